from __future__ import annotations

from itertools import zip_longest

import pytest
from sacrebleu.metrics import TER

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.ter.scoring import ter


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    [
        ("a b c d", ["a b c d"], 0),
        ("a b x d", ["a b c d"], 25),
        ("b c d a", ["a b c d"], 25),  # one shift
        ("a b c d", ["b c d a", "e f g h"], 25),
        ("x y", ["a b c d"], 100),
        ("a", ["a b c", "a b c d e"], 100 * 2 / 4),  # two edits, mean length four
        ("", ["a b", "a b c d"], 100 * 2 / 3),
        ("a b c", [""], 100),
        ("A B", ["a b"], 0),
    ],
)
def test_hand_worked(prediction: str, references: list[str], score: float) -> None:
    assert ter([prediction], [references])["score"] == pytest.approx(score)


@pytest.mark.parametrize("option", ["normalized", "no_punct", "asian_support", "case_sensitive"])
def test_options_and_signature_are_those_of_sacrebleu(option: str) -> None:
    predictions, references = ["The cat, sat down.", "a B c"], [["the cat sat down", "He sat."], ["A b c!"]]
    metric = TER(**{option: True})
    expected = metric.corpus_score(predictions, list(zip_longest(*references)))
    result = ter(predictions, references, **{option: True})
    assert result["score"] == pytest.approx(expected.score)
    assert (result["num_edits"], result["ref_length"]) == (expected.num_edits, expected.ref_length)
    assert result["signature"] == metric.get_signature().format()


def test_order_of_references_does_not_matter() -> None:
    references = ["a b c", "c b a x", "b"]
    assert ter(["c a b"], [references])["score"] == ter(["c a b"], [references[::-1]])["score"]


def test_statistics_sum_to_the_score() -> None:
    statistics = ter(["a b", "c"], [["a x"], ["c", "d e f"]]).statistics["ter"]
    assert statistics.rows.tolist() == [[1, 2], [0, 2]]
    assert statistics.score == 25
    assert not statistics.higher_is_better


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match=r"predictions\[0\] must be a text"):
        ter([1], ["a"])
