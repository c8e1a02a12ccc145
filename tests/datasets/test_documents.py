from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_paraphrase.datasets.documents import most_frequent, split_of, split_point, tokenize, write_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wonderful time- even with the snow!", ["Wonderful", "time", "-", "even", "with", "the", "snow", "!"]),
        ("don't say dogs' 'it'", ["don't", "say", "dogs", "'", "'", "it", "'"]),
        ("a <unk> and <b>", ["a", "<unk>", "and", "<", "b", ">"]),
        ("$3.50... é_1", ["$", "3", ".", "50", ".", ".", ".", "é_1"]),
        (" \t ", []),
    ],
)
def test_words(text, words):
    assert tokenize(text) == words


@given(st.text(max_size=80))
def test_words_joined_are_the_same_words(text):
    assert tokenize(" ".join(tokenize(text))) == tokenize(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a week-long, all-in-one stay- good", "a week-long , all-in-one stay - good"),
        ("e-mail 2-3 - 1990–2000 – one—two", "e-mail 2-3 - 1990–2000 – one—two"),
        ("<unk>-like don't-know --x", "<unk>-like don't-know - - x"),
    ],
)
def test_hyphens_and_dashes_inside_words_stay_there(text, written):
    assert write_words(text) == written == write_words(written)


@given(st.text(alphabet="ab1 -–—'’.<>unk", max_size=40))
def test_what_is_written_has_the_words_that_were_counted(text):
    assert tokenize(write_words(text)) == tokenize(text)


def test_most_frequent_words():
    documents = [["b", "a", "<unk>", "<unk>"], ["a", "c", "b"], ["<unk>", "d"]]
    assert most_frequent(documents, 2) == {"a", "b"}
    # Of equally frequent words the first in the alphabet.
    assert most_frequent(documents, 3) == {"a", "b", "c"}
    assert most_frequent(documents, 9) == {"a", "b", "c", "d"}
    assert most_frequent([], 3) == set()


def test_counting_in_bounded_memory_keeps_what_is_frequent():
    documents = [["common", "usual", f"once{number}"] for number in range(1000)]
    assert most_frequent(documents, 2, most_counted=10) == {"common", "usual"}


def test_points_are_spread_evenly_and_depend_on_seed_and_text():
    points = [split_point(42, f"text {number}") for number in range(4000)]
    assert all(0 <= point < 1 for point in points)
    shares = Counter(split_of(point, {"test": 1, "validation": 0, "train": 3}) for point in points)
    assert shares["validation"] == 0 and 900 < shares["test"] < 1100
    assert split_point(42, "a") == split_point(42, "a") != split_point(43, "a")
    # Other machines and Pythons have to find the same.
    assert [split_of(point, {"test": 0.5, "train": 0.5}) for point in points[:6]] == PINNED


PINNED = ["train", "test", "test", "test", "test", "train"]


def test_the_end_of_the_line_is_in_the_last_split():
    assert split_of(1.0, {"test": 1, "train": 2}) == "train"
    assert split_of(0.0, {"test": 0, "train": 2}) == "train"
