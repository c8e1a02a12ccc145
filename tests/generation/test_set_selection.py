from __future__ import annotations

import random

import pytest

from hf_paraphrase.generation.set_selection import choose_diverse, ngram_likeness, normal_form

WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "how", "do", "i", "learn", "faster", "?"]


def random_texts(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in range(count)]


def likeness_by_hand(first: str, second: str) -> float:
    """Order by order, by counting."""
    first, second = (text.lower().split() for text in (first, second))
    shares = []
    for order in range(1, min(4, max(len(first), len(second))) + 1):
        one, other = ([tuple(w[i : i + order]) for i in range(len(w) - order + 1)] for w in (first, second))
        union = [gram for i, gram in enumerate(one + other) if gram not in (one + other)[:i]]
        shares.append(len([gram for gram in union if gram in one and gram in other]) / len(union))
    return sum(shares) / len(shares)


def choose_naively(source: str, texts: list[str], scores: list[float], n: int, diversity: float) -> list[int]:
    """All margins anew at every step."""
    chosen: list[int] = []
    while len(chosen) < min(n, len(texts)):
        margins = {}
        for place, text in enumerate(texts):
            if place not in chosen:
                likeness = max(likeness_by_hand(text, other) for other in [source, *(texts[i] for i in chosen)])
                margins[place] = (1 - diversity) * scores[place] - diversity * likeness
        chosen.append(next(place for place in margins if margins[place] == max(margins.values())))
    return chosen


@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7, 1.0])
def test_equals_the_naive_choice(diversity: float) -> None:
    for seed in range(40):
        source, *texts = random_texts(seed, 9)
        draw = random.Random(seed)
        scores = [draw.random() for _ in texts]
        for n in (1, 3, 20):
            expected = choose_naively(source, texts, scores, n, diversity)
            assert choose_diverse(source, texts, scores, n, diversity) == expected


def test_without_diversity_the_highest_scores_are_chosen() -> None:
    assert choose_diverse("a", ["x y", "x y z", "q"], [0.2, 0.9, 0.3], 2, 0.0) == [1, 2]
    # Of two alike, and one that is like the source, the worse one that is like neither.
    texts, scores = ["x y z", "x y z w", "a b", "q r"], [0.9, 0.8, 0.7, 0.1]
    assert choose_diverse("a b c", texts, scores, 2, 0.9) == [0, 3]
    assert choose_diverse("a", [], [], 3, 0.5) == []


def test_likeness() -> None:
    assert ngram_likeness("The cat sat", "the cat sat") == 1.0
    assert ngram_likeness("a b", "c d") == ngram_likeness("", "a") == ngram_likeness("", "") == 0.0
    # 2 of 4 words, 1 of 3 pairs, none of 2 triples.
    assert ngram_likeness("a b c", "a b d") == pytest.approx((2 / 4 + 1 / 3 + 0) / 3)
    for seed in range(50):
        first, second = random_texts(seed, 2)
        assert ngram_likeness(first, second) == pytest.approx(likeness_by_hand(first, second))


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("How do I learn?", "how do i  learn !", True),
        ("can not", "cannot", True),
        ("Straße", "STRASSE", True),
        ("cafe\u0301 ﬁn", "Café FIN.", True),
        ("co\u00adop\u200b", "co-op", True),
        ("हिन्दी", "हन्द", False),
        ("C++", "C", False),
        ("10²", "10", False),
        ("…?!", "", True),
    ],
)
def test_normal_form(first: str, second: str, equal: bool) -> None:
    assert (normal_form(first) == normal_form(second)) is equal
