from __future__ import annotations

import random

import pytest
import torch
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from hf_paraphrase import Text2TextGenerationPipeline
from hf_paraphrase.models.text.candidate_selection import (
    jaccard_similarity,
    select_by_difference,
    select_by_jaccard,
    select_by_mbr,
    select_by_score,
    token_set,
    tokens,
)
from tests.models.tiny import tiny_t5, word_tokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_tokens(text, expected):
    assert token_set(text) == expected


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


def test_the_first_with_other_words_is_chosen_and_the_first_where_none_has():
    groups = [["How are You", "how are you?", "how're you?"], ["Yes."], ["you are", "are you"]]
    assert select_by_difference(["how are you?", "yes", "Are you?"], groups) == [2, 0, 0]


def test_candidates_with_obvious_faults_are_passed_over():
    sources = ["He had to go.", "i know that that is so.", "I won 🎉"]
    groups = [
        ["He had to to go.", "he must go.", "He must go."],
        ["I know know that that is so.", "that that is"],
        ["I have won", "I have won 🎉"],
    ]
    assert select_by_difference(sources, groups) == [2, 1, 1]


def test_names_and_numbers_stay_where_the_words_change():
    sources = ["Is Ann at 5 Elm Road?", "MORE RAIN IN 2026", "I saw Bo."]
    groups = [
        ["is ann at 5 elm road", "Is Anna at 5 Elm Road?", "Is she at 5 Elm Road?", "At 5 Elm Road is Ann?"],
        ["MORE RAIN IN 2026", "RAIN IN 2025", "A WET 2026"],
        ["I saw Bo.", "I saw Beau."],
    ]
    assert select_by_difference(sources, groups) == [3, 2, 0]


def test_the_highest_score_is_chosen_and_the_first_of_equals():
    assert select_by_score([[-3.0, -1.0, -1.0], [0.0, -2.0]]) == [1, 0]


def test_the_candidate_with_which_the_others_agree_is_chosen():
    candidates = [
        ["two dogs on a beach", "a man rides a wave on a board", "a man rides a wave", "the man rides a wave"],
        ["a b c d", "w x y z", "w x y z"],
    ]
    assert select_by_mbr(candidates) == [2, 1]


def test_agreement_is_the_mean_bleu_of_all_pairs():
    rng = random.Random(1)
    pools = [[" ".join(rng.choices("abcde", k=rng.randint(4, 9))) for _ in range(7)] for _ in range(40)]
    pools = [[*pool, *pool[:2]] for pool in pools]

    def mean_bleu_naively(text: str, pool: list[str]) -> float:
        smooth = SmoothingFunction().method2  # adds one to the counts of more than a word, as Lin and Och 2004
        scores = [sentence_bleu([tokens(other)], tokens(text), smoothing_function=smooth) for other in pool]
        return sum(scores) / len(pool)

    for pool, place in zip(pools, select_by_mbr(pools), strict=True):
        means = [mean_bleu_naively(text, pool) for text in pool]
        assert means[place] == pytest.approx(max(means))
    assert len(set(select_by_mbr(pools))) > 1


@pytest.mark.parametrize(("texts", "expected"), [(["", ""], 0), (["", "a", "a"], 1), (["a"], 0), (["?", "", ""], 1)])
def test_agreement_of_hardly_any_text(texts, expected):
    assert select_by_mbr([texts]) == [expected]


def test_a_choice_of_the_config_holds_where_one_text_is_asked_for():
    choice = {"num_candidates": 4, "select": lambda texts, groups: [2] * len(texts)}
    models = tiny_t5(task_specific_params={"text2text-generation": choice}), tiny_t5()
    options = {"tokenizer": word_tokenizer(), "device": "cpu"}
    pipe, plain = (Text2TextGenerationPipeline(model=model, **options) for model in models)
    assert (
        pipe("a dog sat on the mat", max_new_tokens=6)
        == plain("a dog sat on the mat", num_return_sequences=4, max_new_tokens=6)[2:3]
    )
    for asked in ({"num_return_sequences": 1}, {"num_beams": 1}, {"return_tensors": True}, {"do_sample": True}):
        drawn = []
        for one in (pipe, plain):
            torch.manual_seed(1)
            drawn.append(repr(one("a dog sat on the mat", **asked, max_new_tokens=6)))
        assert drawn[0] == drawn[1]
