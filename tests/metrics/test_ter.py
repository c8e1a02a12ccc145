from __future__ import annotations

import random
from itertools import zip_longest

import pytest
from sacrebleu.metrics import TER
from sacrebleu.metrics.lib_ter import BeamEditDistance, translation_edit_rate

from hf_paraphrase.errors import InputError
from hf_paraphrase.metrics.ter.distance import EditDistance
from hf_paraphrase.metrics.ter.edits import fewest_edits
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


def random_words(rng: random.Random, longest: int, vocabulary: str) -> list[str]:
    return [rng.choice(vocabulary) for _ in range(rng.randint(0, longest))]


def test_the_same_edits_as_sacrebleu() -> None:
    """Short and long texts, few and many words in common, one to four references."""
    rng = random.Random(7)
    for _ in range(600):
        vocabulary = "abcdefghijklmnopqrstuvwxyz"[: rng.randint(1, 26)]
        longest = rng.choice([3, 12, 12, 12, 30])
        words = random_words(rng, longest, vocabulary)
        references = [random_words(rng, longest, vocabulary) for _ in range(rng.randint(1, 4))]
        expected = min(translation_edit_rate(words, reference)[0] for reference in references)
        assert fewest_edits(words, references) == expected, (words, references)


@pytest.mark.parametrize("lengths", [(70, 60), (20, 75), (75, 20)])
def test_the_same_edits_as_sacrebleu_outside_its_beam(lengths: tuple[int, int]) -> None:
    rng = random.Random(3)
    words, reference = ([rng.choice("abcdefghijkl") for _ in range(length)] for length in lengths)
    assert fewest_edits(words, [reference]) == translation_edit_rate(words, reference)[0]


def test_distance_and_trace_are_those_of_sacrebleu() -> None:
    rng = random.Random(5)
    for _ in range(300):
        words, reference = random_words(rng, 12, "abcd"), random_words(rng, 12, "abcd")
        distance = EditDistance(reference)
        columns = distance.columns(words)
        assert (distance(words), distance.trace(columns, words)) == BeamEditDistance(reference)(words)
        assert distance.resume(columns[len(words) // 2], words[len(words) // 2 :]) == distance(words)


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
