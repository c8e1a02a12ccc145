"""Calibration of a model as a judge, on a writer whose probabilities are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.judges import FEATURES, OpenJudge, text_features
from scripts.judging.judges import (
    LabelledPair,
    area_under_curve,
    compare_judges,
    fit_judge,
    fit_own_text,
    make_pairs,
)
from scripts.judging.meaning_edits import EDITS

SENTENCES = [
    "Yesterday Anna bought 3 old books because they were cheap.",
    "When he came home, Peter was not hungry.",
    "She always drinks two cups of coffee before work.",
    "The old bridge was closed, but the new one is open.",
    "I have never seen a train that was so slow.",
]
PAIRS = [(text, text.replace("was", "had been")) for text in SENTENCES]


class WordWriter:
    """Finds a word of the target probable where the source has it."""

    def token_log_probs(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[list[float]]:
        return [
            [-0.1 if word in source.split() and word.isascii() else -4.0 for word in target.split()]
            for source, target in zip(sources, targets, strict=True)
        ]


def test_pairs_of_every_kind() -> None:
    pairs = make_pairs(PAIRS * 3, seed=1)
    kinds = [one.kind for one in pairs]
    assert {*kinds} == {"same", "shuffled", *EDITS} and kinds.count("same") == kinds.count("shuffled") == 15
    assert all(one.source != one.candidate for one in pairs if one.kind != "same")
    assert pairs == make_pairs(PAIRS * 3, seed=1) != make_pairs(PAIRS * 3, seed=2)


def test_the_fitted_judge_tells_them_apart() -> None:
    writer, pairs = WordWriter(), make_pairs(PAIRS)
    fitted = fit_judge(writer, pairs)
    assert list(fitted["weights"]) == list(FEATURES)
    assert fitted["weights"]["mean"] > 0 > max(fitted["weights"][name] for name in FEATURES[2:])
    table = compare_judges(
        {"open": OpenJudge(writer, fitted), "blind": lambda judged, batch_size: [0.5] * len(judged)}, pairs
    )
    assert table["open"]["shuffled"] == 1.0 and table["open"]["all"] > 0.9
    assert set(table["blind"].values()) == {0.5}


def test_own_text_is_told_from_other_text() -> None:
    other = ["ä é ö ü", "ß è ñ å", "ç ø æ"]
    fitted = fit_own_text(WordWriter(), SENTENCES * 20, other)
    for text in (*SENTENCES, *other):
        (features,) = text_features(WordWriter(), [text], 1)
        assert (features @ np.array(fitted["weights"]) + fitted["bias"] < 0) == (text in other)


def test_area_under_the_curve() -> None:
    assert area_under_curve(np.array([3.0, 1.0]), np.array([2.0, 1.0])) == (1 + 1 + 0 + 0.5) / 4
    with pytest.raises(InputError, match="needs pairs that say the same and pairs that do not"):
        compare_judges({"open": lambda judged, batch_size: [0.0]}, [LabelledPair("same", "a", "b")])
