"""Choosing a set of paraphrases that are good, and unlike the text and each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..metrics.words import ngrams, split_words

__all__ = ["choose_diverse", "ngram_likeness", "normal_form"]

MAX_ORDER = 4
# Spaces, punctuation and what is not seen; signs such as + stay, and so do marks, which are vowels in many scripts.
IGNORED = ("Z", "P", "C")


def normal_form(text: str) -> str:
    """A text without case, spaces and punctuation, in one Unicode form: where it is equal, two texts count as one."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(character for character in text if unicodedata.category(character)[0] not in IGNORED)


def choose_diverse(
    source: str, candidates: Sequence[str], scores: Sequence[float], n: int, diversity: float
) -> list[int]:
    """Choose candidates one after the other by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each is the one with most of `(1 - diversity) * score - diversity * likeness`, where likeness is the greatest
    `ngram_likeness` to one chosen before, or to the source. At 0 these are the `n` of the highest scores.

    Args:
        source: The text.
        candidates: Its paraphrases.
        scores: A number for each, from 0 to 1.
        n: How many to choose, where there are as many.
        diversity: From 0 to 1.

    Returns:
        Their places, in the order in which they were chosen; of equals, what comes first.
    """
    grams = [_ngram_sets(words) for words in split_words([*candidates, source], lowercase=True)]
    likeness = [_overlap(each, grams[-1]) for each in grams[:-1]]
    left, chosen = list(range(len(candidates))), []
    while left and len(chosen) < n:
        best = max(left, key=lambda place: (1 - diversity) * scores[place] - diversity * likeness[place])
        left.remove(best)
        chosen.append(best)
        for place in left:
            likeness[place] = max(likeness[place], _overlap(grams[place], grams[best]))
    return chosen


def ngram_likeness(first: str, second: str) -> float:
    """How alike two texts are, from 0 to 1: the n-grams that they share, as a part of all that either has.

    The mean over n from 1 to 4, or to the words of the longer text; case does not count, and each n-gram counts once.
    """
    return _overlap(*(_ngram_sets(words) for words in split_words([first, second], lowercase=True)))


def _ngram_sets(words: list[str]) -> list[set[tuple[str, ...]]]:
    return [set(ngrams(words, order)) for order in range(1, MAX_ORDER + 1)]


def _overlap(first: list[set], second: list[set]) -> float:
    shares = [len(one & other) / len(one | other) for one, other in zip(first, second, strict=True) if one | other]
    return sum(shares) / len(shares) if shares else 0.0
