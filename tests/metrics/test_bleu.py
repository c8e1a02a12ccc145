from __future__ import annotations

import math

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.bleu.scoring import bleu

PREDICTIONS = [
    "How can I learn to cook quickly?",
    "Two dogs play with a red ball on the grass.",
    "A man rides his bike",
]
REFERENCES = [
    ["How can I learn cooking quickly?", "What is the quickest way to learn to cook?"],
    ["Two dogs are playing with a ball on the grass.", "A pair of dogs play with a red ball."],
    ["A man is riding a bike down the street.", "Someone rides his bike on a road."],
]


def test_hand_worked_precisions() -> None:
    """4/5, 3/4, 2/3 and 1/2 of the n-grams match: their product is 1/5."""
    result = bleu(["a b c d e"], ["a b c d f"])
    assert result["counts"] == [4, 3, 2, 1]
    assert result["totals"] == [5, 4, 3, 2]
    assert result["score"] == pytest.approx(100 * 0.2**0.25)


def test_every_order_in_one_result() -> None:
    result = bleu(PREDICTIONS, REFERENCES)
    for order in (1, 2, 3, 4):
        assert result[f"bleu_{order}"] == pytest.approx(bleu(PREDICTIONS, REFERENCES, max_order=order)["score"])
    assert result["bleu_4"] == result["score"]


def test_a_count_is_clipped_by_the_largest_in_any_reference() -> None:
    result = bleu(["the the the the"], [["the cat", "the and the"]], max_order=1)
    assert result["counts"] == [2]
    assert result["score"] == pytest.approx(50)


def test_brevity_penalty_takes_the_closest_reference() -> None:
    assert bleu(["a b c d"], ["a b c d e f g h"])["bp"] == pytest.approx(math.exp(1 - 8 / 4))
    assert bleu(["a b c d"], [["a b c d e f g h", "a b c d e"]])["ref_len"] == 5


def test_same_as_the_sacrebleu_command() -> None:
    """`sacrebleu refs1 refs2 -i predictions -w 6` of version 2.6.0."""
    result = bleu(PREDICTIONS, REFERENCES)
    assert result["score"] == pytest.approx(63.093906, abs=1e-6)
    assert result["signature"].startswith("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_one_reference_as_text_or_as_list() -> None:
    first = [references[0] for references in REFERENCES]
    assert bleu(PREDICTIONS, first)["score"] == pytest.approx(32.535548, abs=1e-6)
    assert bleu(PREDICTIONS, first) == bleu(PREDICTIONS, [[text] for text in first])


def test_ragged_references_are_the_same_as_repeated_ones() -> None:
    ragged = [REFERENCES[0], REFERENCES[1][:1], REFERENCES[2]]
    repeated = [REFERENCES[0], REFERENCES[1][:1] * 2, REFERENCES[2]]
    assert bleu(PREDICTIONS, ragged)["score"] == bleu(PREDICTIONS, repeated)["score"]
    assert bleu(PREDICTIONS, ragged)["signature"].startswith("nrefs:var|")


def test_lowercase_and_tokenize_are_in_the_signature() -> None:
    shouted = [text.upper() for text in PREDICTIONS]
    assert bleu(shouted, REFERENCES)["score"] < 20
    result = bleu(shouted, REFERENCES, lowercase=True, tokenize="intl")
    assert result["score"] == pytest.approx(bleu(PREDICTIONS, REFERENCES, lowercase=True)["score"])
    assert "case:lc" in result["signature"]
    assert "tok:intl" in result["signature"]


def test_empty_predictions_score() -> None:
    assert bleu(["", ""], ["a", "b"])["score"] == 0
    assert 0 < bleu(["", PREDICTIONS[1]], REFERENCES[:2])["score"] < 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenize": "14a"}, "unknown tokenize '14a'; available: none"),
        ({"max_order": 0}, "max_order must be at least 1"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bleu(PREDICTIONS, REFERENCES, **options)
