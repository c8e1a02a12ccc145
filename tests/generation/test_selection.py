from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification, pipeline

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation import select_candidates
from hf_paraphrase.generation.selection import score_by_matcher
from tests.models.tiny import save, tiny_matcher, word_tokenizer

SOURCES = ["the cat sat on the mat", "how do i learn faster ?"]
CANDIDATES = [["a dog sat", "on a mat the cat sat", "cat"], ["how do i learn", "learn faster ?"]]


def score_naively(model: BertForSequenceClassification, label: int) -> list[list[float]]:
    """Each pair on its own, its logits less those of the other labels."""
    tokenizer, scores = word_tokenizer(), []
    for source, group in zip(SOURCES, CANDIDATES, strict=True):
        with torch.no_grad():
            logits = [model(**tokenizer(source, text, return_tensors="pt")).logits[0] for text in group]
        scores.append([float(each[label] if len(each) == 1 else each.softmax(0)[label]) for each in logits])
    return scores


def places(scores: list[list[float]]) -> list[int]:
    return [int(np.argmax(values)) for values in scores]


def test_by_jaccard():
    assert select_candidates(SOURCES, CANDIDATES) == [1, 0]


def test_by_difference():
    assert select_candidates(["a cat"], [["A cat.", "one cat"]], by="different") == [1]


def test_by_mbr():
    assert select_candidates(SOURCES, [["a dog sat", "a cat sat", "a cat sat on it"], ["b"]], "mbr") == [1, 0]


def test_by_score():
    scores = [[-2.0, -3.0, -1.0], [-2.0, -1.0]]
    assert select_candidates(SOURCES, CANDIDATES, "score", scores=scores) == [2, 1]
    tensors = [torch.tensor(values) for values in scores]
    assert select_candidates(SOURCES, CANDIDATES, "score", scores=tensors) == [2, 1]


def test_by_embedding():
    def encoder(texts: list[str]) -> np.ndarray:
        assert len(texts) == len(set(texts))
        return np.array([[text.count("cat"), text.count("learn"), text.count("a "), 0.1] for text in texts])

    assert select_candidates(SOURCES, CANDIDATES, "embedding", encoder=encoder) == [2, 0]
    same = [["learn faster ?", "how do i learn"], ["how do i learn", SOURCES[1]]]
    assert select_candidates([SOURCES[1], SOURCES[1]], same, "embedding", encoder=encoder) == [0, 0]


@pytest.mark.parametrize(
    ("id2label", "label"),
    [
        (None, 1),
        ({0: "paraphrase", 1: "other"}, 0),
        ({0: "contradiction", 1: "Entailment", 2: "neutral"}, 1),
        ({0: "score"}, 0),
    ],
    ids=["two", "named", "three", "score"],
)
def test_by_matcher(id2label, label, tmp_path):
    model = tiny_matcher(len(id2label) if id2label else 2, id2label)
    expected = places(score_naively(model, label))
    path = save(model, tmp_path)
    assert select_candidates(SOURCES, CANDIDATES, "matcher", matcher=path) == expected
    loaded = pipeline("text-classification", model=path, batch_size=3)
    assert select_candidates(SOURCES, CANDIDATES, "matcher", matcher=loaded) == expected
    # The choice is not that of whatever comes first.
    assert set(expected) != {0}


def test_of_equals_the_first():
    for by, options in (
        ("jaccard", {}),
        ("mbr", {}),
        ("score", {"scores": [[1, 1]]}),
        ("embedding", {"encoder": lambda texts: np.ones((len(texts), 2))}),
    ):
        assert select_candidates(["a"], [["a b", "b a"]], by, **options) == [0]


@pytest.mark.parametrize("by", ["jaccard", "mbr", "score", "embedding", "matcher"])
def test_no_texts(by):
    options = {"scores": [], "encoder": lambda texts: np.ones((len(texts), 2))}
    matcher = pipeline("text-classification", model=tiny_matcher(2), tokenizer=word_tokenizer())
    assert select_candidates([], [], by, matcher=matcher, **options) == []


def test_a_matcher_is_not_asked_about_empty_texts():
    matcher = pipeline("text-classification", model=tiny_matcher(1), tokenizer=word_tokenizer())
    scores = score_by_matcher(["the cat", ""], [["", "a cat", "  "], ["a"]], matcher)
    assert [[value == -math.inf for value in values] for values in scores] == [[True, False, True], [True]]
    assert select_candidates(["the cat", ""], [["", "a cat", "  "], ["a", "b"]], "matcher", matcher=matcher) == [1, 0]


def test_empty_texts():
    candidates = [["", "a"], ["", ""]]
    assert select_candidates(["", "a"], candidates) == [0, 0]
    encoder = lambda texts: np.array([[len(text), 1] for text in texts])  # noqa: E731 - shorter so
    assert select_candidates(["", "a"], candidates, "embedding", encoder=encoder) == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (["a"], [["a"]], "luck"),
            "`by` must be one of different, jaccard, mbr, score, embedding, matcher, not 'luck'",
        ),
        ((["a", "b"], [["a"]]), "`candidates` is for 1 texts, but `sources` has 2"),
        ((["a", "b"], [["a"], []]), r"`candidates`, text 1: this must be a list of texts, not \[\]"),
        ((["a"], ["abc"]), "`candidates`, text 0: this must be a list"),
        ((["a"], [["a"]], "score"), "`by='score'` needs `scores=`"),
        ((["a"], [["a"]], "matcher"), "to choose by 'matcher' needs `matcher`"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        select_candidates(*arguments)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "`scores` is for 0 texts, but there are 1"),
        ([[1.0]], "`scores`, text 0: there are 1 for 2 candidates"),
        ([[1.0, float("nan")]], "`scores`, text 0: not all are numbers"),
    ],
)
def test_scores_that_do_not_fit(scores, message):
    with pytest.raises(InputError, match=message):
        select_candidates(["a"], [["a", "b"]], "score", scores=scores)


def test_matchers_that_do_not_fit(tmp_path):
    path = save(tiny_matcher(3, {0: "good", 1: "bad", 2: "ugly"}), tmp_path / "three")
    with pytest.raises(InputError, match="tells good, bad, ugly apart, none of which is named paraphrase"):
        select_candidates(["a"], [["a", "b"]], "matcher", matcher=path)
    with pytest.raises(InputError, match="`matcher`: .*nothing is not a loadable sentence-pair model"):
        select_candidates(["a"], [["a", "b"]], "matcher", matcher=tmp_path / "nothing")
