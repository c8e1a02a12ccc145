from __future__ import annotations

import math

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.coherence import scoring
from hf_paraphrase.metrics.coherence.scoring import coherence

ORIGINAL = ["The cats slept.", "A dog barked loudly!", "Rain fell in Paris.", "We ate bread"]


def score(output: list[str], original: list[str] = ORIGINAL) -> float:
    return coherence([output], [original], tagger="content")["score"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([0, 1, 2, 3], 0),
        ([2, 3], 0),  # shifted as a whole
        ([1, 0], 2),  # |1 - (-1)|
        ([0, 2], 1),  # |1 - 2|
        ([0, 0], 1),  # |1 - 0|
        ([3, 2, 1, 0], 2 / 12 * (3 * 2 + 2 * 4 + 1 * 6)),  # distances 1, 2, 3 turned round: 2, 4, 6 apart
    ],
)
def test_orders_by_hand(order: list[int], expected: float) -> None:
    assert score([ORIGINAL[index] for index in order]) == pytest.approx(expected)


def test_alignment_takes_the_best_f1() -> None:
    """`dog` alone is half of the first original, but the whole of the second."""
    assert score(["dog", "rain"], ["dog bark", "dog", "rain"]) == 0
    assert score(["dog", "rain"], ["dog", "dog bark", "rain"]) == 1


@pytest.mark.parametrize(
    "original",
    [["great hotel", "nice pool", "great hotel", "nice pool"], ["!", "great hotel", "it is .", "...", "a pool"]],
)
def test_a_copy_has_no_disorder(original: list[str]) -> None:
    """Sentences that repeat, and those without verbs and nouns, are aligned to themselves."""
    copies = [original] * 20
    result = coherence(copies, copies, tagger="content")
    assert result["score"] == result["unaligned"] == 0


def test_sentences_without_a_match_are_aligned_at_random() -> None:
    """Of [first, unmatched] the second's original is any of four: L is |1 - j'| for j' from 0 to 3, 1 on average."""
    outputs, seeds = [[ORIGINAL[0], "Nothing of that"]] * 400, (1, 2)
    first, other = (coherence(outputs, [ORIGINAL] * 400, tagger="content", seed=seed) for seed in seeds)
    rows = coherence(outputs, [ORIGINAL] * 400, tagger="content", seed=1).statistics["coherence"].rows
    assert {tuple(row) for row in rows.tolist()} == {(0, 1), (1, 1), (2, 1)}
    assert first["score"] == pytest.approx(1, abs=0.12) and other["score"] == pytest.approx(1, abs=0.12)
    assert first["score"] != other["score"]
    assert coherence(outputs, [ORIGINAL] * 400, tagger="content", seed=1) == first
    assert first["unaligned"] == 0.5 and first["sentences"] == 800
    assert first["signature"].endswith("|unaligned:random-1")


def test_outputs_without_two_sentences_are_left_out() -> None:
    result = coherence([ORIGINAL[:2], [ORIGINAL[1]], []], [ORIGINAL] * 3, tagger="content")
    assert result["score"] == 0
    assert result["documents"] == 1
    alone = coherence([[ORIGINAL[1]], []], [ORIGINAL] * 2, tagger="content")
    assert math.isnan(alone["score"])
    assert alone["documents"] == 0


def test_documents_count_the_same() -> None:
    outputs = [[ORIGINAL[1], ORIGINAL[0]], ORIGINAL, [ORIGINAL[0]]]
    statistics = coherence(outputs, [ORIGINAL] * 3, tagger="content").statistics["coherence"]
    assert statistics.rows.tolist() == [[2, 1], [0, 1], [0, 0]]
    assert statistics.score == 1
    assert not statistics.higher_is_better


def test_the_result_names_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_nltk_can_tag", lambda: False)
    assert coherence([ORIGINAL], [ORIGINAL])["features"] == "content words (no tagger)"
    assert coherence([ORIGINAL], [ORIGINAL], tagger=str.split)["features"] == "words of the given tagger"
    with pytest.raises(InputError, match="nltk.downloader averaged_perceptron_tagger_eng"):
        coherence([ORIGINAL], [ORIGINAL], tagger="nltk")


def test_nltk_finds_verbs_and_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk")
    tags = {"The": "DT", "Cats": "NNS", "slept": "VBD", "well": "RB"}
    monkeypatch.setattr(scoring, "_nltk_can_tag", lambda: True)
    monkeypatch.setattr(nltk, "pos_tag", lambda words: [(word, tags[word]) for word in words])
    extract, name = scoring.choose_features(None)
    assert extract("The Cats slept, well!") == ["cats", "slept"]
    assert name == "verbs and nouns (nltk)"


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([["a"]], [["a"], ["b"]], "1 predictions, 2 references"),
        (["a"], [["a"]], r"predictions\[0\] must be a list of texts, got str"),
        ([["a"]], [[]], r"references\[0\] has 0 texts; give at least 1"),
        ([["a", None]], [["a"]], r"predictions\[0\]\[1\] must be a text"),
        ([], [], "predictions is empty"),
    ],
)
def test_bad_input_is_named(predictions: list, references: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        coherence(predictions, references, tagger="content")
    with pytest.raises(InputError, match="unknown tagger 'spacy'"):
        coherence([["a"]], [["a"]], tagger="spacy")
