from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.datasets.running_text import fit_sentences, sentence_pairs, split_at_commas, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It was a good day.", ["It", "was", "a", "good", "day", "."]),
        ("don't", ["don", "'", "t"]),
        ('"No," he said--twice.', ['"', "No", ',"', "he", "said", "--", "twice", "."]),
        ("go .  ' I", ["go", ".", "'", "I"]),
        ("on 12,000 lines, in 1859, 3½ of them", ["on", "12,000", "lines", ",", "in", "1859,", "3½", "of", "them"]),
        ("B2b", ["B", "2", "b"]),
        ("naïve Ærø", ["naïve", "Ærø"]),
        (" \t\n\u00a0", []),
        ("a" * 21 + "!" * 25, ["a" * 20, "!" * 20]),
    ],
)
def test_words_are_runs_of_letters_or_of_the_rest(text, words):
    assert words_of(text) == words


@given(st.text(max_size=60))
def test_words_lose_white_space_only(text):
    assert "".join(words_of(text, max_characters=1000)) == "".join(text.split())
    assert words_of(" ".join(words_of(text))) == words_of(text)


def numbered(count: int, commas: tuple[int, ...] = ()) -> list[str]:
    """Words that are all different; a comma stands at the given places."""
    return ["," if place in commas else f"w{place}" for place in range(count)]


@pytest.mark.parametrize(
    ("count", "commas", "lengths"),
    [
        (30, (3, 9), [30]),
        (31, (), [31]),
        (31, (9,), [10, 21]),
        # The longest part of at most 30 words, then the rest again.
        (40, (9, 19, 29), [30, 10]),
        (40, (9, 19, 30), [20, 20]),
        (70, (9, 19, 29, 39, 49, 59), [30, 30, 10]),
        (70, (9, 29, 35), [30, 6, 34]),
        # Where the first comma is too late, the part before it is too long.
        (50, (40,), [41, 9]),
        (90, (10, 60), [11, 50, 29]),
        # A comma at the very end splits nothing off.
        (35, (34,), [35]),
        (36, (34,), [35, 1]),
        (0, (), [0]),
    ],
)
def test_splitting_at_commas(count, commas, lengths):
    words = numbered(count, commas)
    parts = split_at_commas(words)
    assert [len(part) for part in parts] == lengths
    assert sum(parts, []) == words


def test_a_comma_inside_a_number_does_not_split():
    words = ["w"] * 10 + ["12,000"] + ["w"] * 15 + ["1859,"] + ["w"] * 15
    assert [len(part) for part in split_at_commas(words)] == [27, 15]


@given(st.lists(st.sampled_from(["w", "w", "w", ",", ',"', "1,0"]), max_size=80), st.integers(1, 12))
def test_split_parts_are_the_sentence_and_as_long_as_they_may_be(words, limit):
    parts = split_at_commas(words, limit)
    assert sum(parts, []) == words
    for part, rest in zip(parts, parts[1:], strict=False):
        assert "," in part[-1] and part[-1] != "1,0"
        if len(part) > limit:
            assert not any(word in (",", ',"') for word in part[:-1])
        # No later comma would have fitted.
        joined = part + rest
        assert not any(joined[end - 1] in (",", ',"') for end in range(len(part) + 1, min(limit, len(joined)) + 1))


def test_targets_are_lengthened_by_two_sentences_at_most():
    sentences = ["a b c", "d e", "f", "g h", "i"]
    assert [(" ".join(source), " ".join(target)) for source, target in sentence_pairs(sentences)] == [
        ("a b c", "d e f g h"),
        ("d e", "f g h i"),
        ("f", "g h i"),
        ("g h", "i"),
    ]
    assert [target for _, target in sentence_pairs(sentences, following=0)] == [["d", "e"], ["f"], ["g", "h"], ["i"]]


def test_sources_and_targets_are_cut_and_full_targets_are_not_lengthened():
    pairs = list(sentence_pairs(["a " * 40, "b " * 29, "c d", "e", "f"]))
    assert pairs[0] == (["a"] * 30, ["b"] * 29 + ["c"])
    assert list(sentence_pairs(["x", "b " * 30, "c"]))[0] == (["x"], ["b"] * 30)


def test_the_second_half_of_a_long_sentence_is_a_target():
    sentences = ["a " * 19 + "a, " + "b " * 20, "", " ", "c d."]
    pairs = list(sentence_pairs(sentences))
    assert pairs[0] == (["a"] * 20 + [","], ["b"] * 20 + ["c", "d", "."])
    assert pairs[1] == (["b"] * 20, ["c", "d", "."])
    assert len(pairs) == 2


@pytest.mark.parametrize("sentences", [[], ["one"], ["", "one", " "]])
def test_a_document_of_one_sentence_has_no_pair(sentences):
    assert list(sentence_pairs(sentences)) == []


@settings(max_examples=50)
@given(st.lists(st.text(alphabet="ab ,.", max_size=40), max_size=12))
def test_every_sentence_but_the_last_is_a_source(sentences):
    fitted = list(fit_sentences(sentences, max_words=5))
    pairs = list(sentence_pairs(sentences, max_words=5))
    assert [source for source, _ in pairs] == [words[:5] for words in fitted[:-1]]
    for place, (_, target) in enumerate(pairs):
        assert target == sum(fitted[place + 1 : place + 4], [])[:5]


def test_only_a_few_sentences_are_held():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield f"sentence {taken}"

    pairs = sentence_pairs(endless())
    for _ in range(10):
        next(pairs)
    assert taken < 20
