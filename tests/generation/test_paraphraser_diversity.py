"""What `diversity` does to the sets that are chosen, for T5, BART and every generator of this package."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.generation.paraphrase_choice import Choice
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu

from .paraphrasers import NO_FLOORS, PARAPHRASERS, make_paraphraser

DIVERSITIES = (0.0, 0.1, 0.3, 1.0)
WORDS = {False: ["cat", "dog", "mat", "sat", "a"], True: ["a", "t", "at", "ta"]}


def suppressed(paraphraser: Paraphraser, words: list[str]) -> list[int]:
    """What a model with random weights must not write, so that its outputs share words with its sources."""
    tokenizer = paraphraser.tokenizer
    allowed = {*tokenizer(" ".join(words))["input_ids"], tokenizer.eos_token_id}
    return [token for token in range(len(tokenizer)) if token not in allowed]


def rises(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether the mean falls by no more than chance: the 95% interval of the difference has 0, or lies above it."""
    draws = np.random.default_rng(0).integers(len(before), size=(1000, len(before)))
    return np.quantile((after - before)[draws].mean(axis=1), 0.975) >= 0


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_pinc_and_variety_rise_with_diversity(name: str) -> None:
    paraphraser, words, draw = make_paraphraser(name), WORDS[name == "hierarchical_lm"], random.Random(7)
    texts = [" ".join(draw.choices(words, k=draw.randint(3, 5))) for _ in range(100)]
    options = {
        "decoding": "sample",
        "num_candidates": 24,
        "seed": 2,
        "temperature": 5.0,
        "batch_size": 100,
        "keep": (),
    }
    options["suppress_tokens"] = suppressed(paraphraser, words)
    if name == "fset":  # whose words are already about equally likely
        options["temperature"] = 0.5
    pools = [
        [one for one in group if one.score is not None]
        for group in paraphraser(texts, n=24, return_rejected=True, **options)
    ]
    rows = [(text, pool) for text, pool in zip(texts, pools, strict=True) if len(pool) > 4]
    assert len(rows) > 20
    novelty, variety = [], []
    for diversity in DIVERSITIES:
        # Novelty apart, which the score rewards without any `diversity`.
        choice = Choice(n=3, keep=(), diversity=diversity, weights=(1, 1, 0), **NO_FLOORS)
        sets = [(text, [one.text for one in choice.choose(text, pool)]) for text, pool in rows]
        novelty.append(np.array([pinc(chosen, [text] * 3, lowercase=True)["score"] for text, chosen in sets]))
        variety.append(np.array([100 - self_bleu([chosen], lowercase=True)["self_bleu_2"] for _, chosen in sets]))
    for values in (novelty, variety):
        assert all(rises(one, other) for one, other in zip(values, values[1:], strict=False))
        # Beyond chance, from one end to the other.
        assert not rises(values[-1], values[0])
