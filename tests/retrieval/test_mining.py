from __future__ import annotations

import itertools

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import mining
from hf_paraphrase.retrieval.mining import mine_paraphrases

from .test_encoders import folder, sentence_transformer  # noqa: F401 (fixtures: a tiny model of each kind)

TEXTS = [
    "how do i learn faster ?",
    "the cat sat on the mat",
    "how do i learn to cook ?",
    "the dog sat on the mat",
    "The  Cat sat on the mat",
    "can you make bread",
    "x y z",
]


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters, which are alike where words are."""
    return np.array([[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts], np.float32)


def all_pairs(texts: list[str]) -> list[tuple[float, int, int]]:
    """Every pair by its cosine, the naive way."""
    vectors = letters(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = itertools.combinations([place for place in range(len(texts)) if place != 4], 2)
    return sorted(((float(vectors[a] @ vectors[b]), a, b) for a, b in pairs), reverse=True)


@pytest.fixture
def sentence_transformers():
    return pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")


@pytest.mark.usefixtures("sentence_transformers")
@pytest.mark.parametrize(("queries", "others"), [(1000, 100_000), (2, 3)])
def test_it_finds_what_comparing_all_finds(queries, others, monkeypatch):
    monkeypatch.setattr(mining, "QUERIES_AT_ONCE", queries)
    monkeypatch.setattr(mining, "TEXTS_AT_ONCE", others)
    monkeypatch.setattr(mining, "ENCODED_AT_ONCE", 2)
    expected = [pair for pair in all_pairs(TEXTS) if 0.7 <= pair[0] <= 0.98]
    found = mine_paraphrases(TEXTS, letters, min_score=0.7, max_score=0.98)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected] and expected
    assert [pair.score for pair in found] == pytest.approx([pair[0] for pair in expected], abs=1e-6)
    assert mine_paraphrases(TEXTS, letters, min_score=0.7, max_score=0.98, max_pairs=2) == found[:2]


@pytest.mark.usefixtures("sentence_transformers")
def test_equal_texts_are_no_pair():
    assert mine_paraphrases(["a cat", "A  cat", "a cat"], letters) == []
    assert mine_paraphrases([], letters) == mine_paraphrases(["a"], letters) == []


@pytest.mark.parametrize("kind", ["folder", "sentence_transformer"])
def test_an_encoder_is_named_by_its_folder(kind, request, sentence_transformers):
    """Two texts that share all words but one are more alike than two that share none."""
    found = mine_paraphrases(TEXTS, request.getfixturevalue(kind), min_score=-1, device="cpu")
    assert len(found) == 15 and found[0].score <= 1 + 1e-6
    assert (1, 3) in [pair[1:] for pair in found[:5]]


def test_words_are_compared_without_a_model(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = mine_paraphrases(TEXTS, "jaccard", min_score=0.4)
    tokens = [set(text.lower().split()) for text in TEXTS]
    naive = {
        (a, b): len(tokens[a] & tokens[b]) / len(tokens[a] | tokens[b])
        for a, b in itertools.combinations([0, 1, 2, 3, 5, 6], 2)
    }
    assert {pair[1:]: pytest.approx(pair.score) for pair in found} == {
        pair: score for pair, score in naive.items() if score >= 0.4
    }
    assert len(found) == 2


def test_what_is_wrong_is_named(monkeypatch):
    with pytest.raises(InputError, match="`min_score` must be from -1 to `max_score`, not 0.9"):
        mine_paraphrases(TEXTS, "jaccard", min_score=0.9, max_score=0.8)
    with pytest.raises(InputError, match="`top_k` must be a whole number of at least 1, not 0"):
        mine_paraphrases(TEXTS, "jaccard", top_k=0)
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match="mining needs sentence-transformers; install it with: pip install"):
        mine_paraphrases(TEXTS, letters)
