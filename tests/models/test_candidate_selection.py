from __future__ import annotations

import pytest

from hf_paraphrase.models.candidate_selection import (
    jaccard_similarity,
    select_by_jaccard,
    select_by_score,
    token_set,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("How do I  learn? How!", {"how", "do", "i", "learn", "?", "!"}),
        ("", set()),
        (" \n\t", set()),
        # Case, full width and combining marks make no difference.
        ("Straße ＡＢＣ cafe\u0301", {"strasse", "abc", "caf\u00e9"}),
        ("👍 你好", {"👍", "你好"}),
        ("\ud800", {"\ud800"}),
    ],
)
def test_tokens(text, tokens):
    assert token_set(text) == tokens


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a b c", "b c d", 2 / 4),
        ("a a b", "A B B", 1.0),
        ("a", "b", 0.0),
        ("", "", 0.0),
        ("", "a", 0.0),
    ],
)
def test_similarity_by_hand(first, second, expected):
    assert jaccard_similarity(first, second) == jaccard_similarity(second, first) == expected


def test_the_most_similar_candidate_is_chosen_and_the_first_of_equals():
    sources = ["how do i cook", "what is it"]
    candidates = [["how to cook", "how do you cook", "how do we cook"], ["is it", "what it is", "what is it"]]
    assert select_by_jaccard(sources, candidates) == [1, 1]


def test_the_highest_score_is_chosen_and_the_first_of_equals():
    assert select_by_score([[-3.0, -1.0, -1.0], [0.0, -2.0]]) == [1, 0]
