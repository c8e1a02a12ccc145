"""What `diversity` does to the sets that are chosen, for T5, BART and every generator of this package."""

from __future__ import annotations

import numpy as np
import pytest

from hf_paraphrase.generation.paraphrase_choice import Choice
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu

from .paraphrasers import PARAPHRASERS, make_paraphraser, random_sentences

DIVERSITIES = (0.0, 0.1, 0.3, 1.0)


def rises(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether the mean does not fall by more than chance: the upper end of the interval of the difference, 95%."""
    draws = np.random.default_rng(0).integers(len(before), size=(1000, len(before)))
    return np.quantile((after - before)[draws].mean(axis=1), 0.975) >= 0


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_pinc_and_variety_rise_with_diversity(name: str) -> None:
    texts = random_sentences(30, seed=7)
    options = {"decoding": "sample", "num_candidates": 12, "batch_size": 30, "keep": ()}
    everything = make_paraphraser(name)(texts, n=12, return_rejected=True, **options)
    pools = [[one for one in group if one.score is not None] for group in everything]
    rows = [(text, pool) for text, pool in zip(texts, pools, strict=True) if len(pool) > 4]
    assert len(rows) > 15
    novelty, variety = [], []
    for diversity in DIVERSITIES:
        choice = Choice(n=3, keep=(), diversity=diversity)
        sets = [[one.text for one in choice.choose(text, pool)] for text, pool in rows]
        novelty.append(
            np.array([pinc(s, [t] * 3, lowercase=True)["score"] for s, (t, _) in zip(sets, rows, strict=True)])
        )
        variety.append(np.array([100 - self_bleu([s], lowercase=True)["self_bleu_2"] for s in sets]))
    for values in (novelty, variety):
        assert all(rises(one, other) for one, other in zip(values, values[1:], strict=False))
        assert values[-1].mean() > values[0].mean()
    # The test can fail: the other way round it does.
    assert not (rises(novelty[-1], novelty[0]) and rises(variety[-1], variety[0]))
