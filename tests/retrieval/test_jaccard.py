from __future__ import annotations

import numpy as np
import pytest

from hf_paraphrase.models.text.candidate_selection import jaccard_similarity
from hf_paraphrase.retrieval import jaccard
from hf_paraphrase.retrieval.jaccard import JaccardIndex
from tests.retrieval.corpus import random_pairs


def search_naively(memory: list[str], text: str, k: int) -> tuple[list[float], list[int]]:
    """Compare with every text, and sort by similarity and then by number."""
    scores = [jaccard_similarity(text, other) for other in memory]
    rows = sorted(range(len(memory)), key=lambda row: (-scores[row], row))[:k]
    return [scores[row] for row in rows], rows


def make_index(*parts: list[str]) -> JaccardIndex:
    index = JaccardIndex()
    for texts in parts:
        index.add([texts], len(texts))
    return index


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("masked", [64, 5, 0])
@pytest.mark.parametrize("shares", [jaccard.SHARES, (0.0,), (0.9, 0.0)])
def test_search_finds_what_comparing_all_finds(monkeypatch, k, masked, shares):
    monkeypatch.setattr(jaccard, "MASKED_TOKENS", masked)
    monkeypatch.setattr(jaccard, "SHARES", shares)
    monkeypatch.setattr(jaccard, "ENTRIES_AT_ONCE", 1000)
    memory = [source for source, _ in random_pairs(300)]
    queries = [source for source, _ in random_pairs(60, seed=1)] + memory[:20] + ["", "zebra", "zebra how", "?"]
    scores, rows = make_index(memory).search(queries, k)
    for place, query in enumerate(queries):
        expected_scores, expected_rows = search_naively(memory, query, k)
        assert rows[place].tolist() == expected_rows
        np.testing.assert_allclose(scores[place], expected_scores, rtol=1e-6)


def test_more_than_all_is_all():
    memory = ["a b", "c", "a"]
    scores, rows = make_index(memory).search(["a", ""], 10)
    assert rows.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert scores.tolist() == [[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_added_texts_are_found_at_once():
    memory = [source for source, _ in random_pairs(80)]
    index = make_index(memory[:50])
    index.search(["how do i learn"], 1)
    index.add([memory[50:]], 30)
    index.add([["entirely new words"]], 1)
    together = make_index([*memory, "entirely new words"])
    queries = [*memory, "new words", "words"]
    for ours, theirs in zip(index.search(queries, 5), together.search(queries, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(index) == 81


@pytest.mark.parametrize(("texts", "queries"), [([], ["a"]), (["a"], []), ([], [])])
def test_nothing_to_search(texts, queries):
    scores, rows = make_index(texts).search(queries, 2)
    assert scores.shape == rows.shape == (len(queries), min(2, len(texts)))


def test_texts_without_any_token():
    scores, rows = make_index(["", " ", ""]).search(["a", ""], 2)
    assert rows.tolist() == [[0, 1], [0, 1]]
    assert not scores.any()


def test_results_do_not_depend_on_the_batch():
    memory = [source for source, _ in random_pairs(200)]
    index = make_index(memory)
    together = index.search(memory, 4)
    alone = [index.search([text], 4) for text in memory[:40]]
    for place in (0, 1):
        np.testing.assert_array_equal(together[place][:40], np.concatenate([found[place] for found in alone]))
