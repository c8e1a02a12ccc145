"""Choosing a set of paraphrases that are good, and unlike the text and each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..metrics.words import ngrams, split_words

MAX_ORDER = 4
# Spaces, punctuation and invisible characters; symbols such as + stay, and so do marks, which are vowels in many
# scripts.
IGNORED = ("Z", "P", "C")
IGNORED_ASCII = {code: None for code in range(128) if unicodedata.category(chr(code))[0] in IGNORED}


def normal_form(text: str) -> str:
    """A text without case, spaces and punctuation, in one Unicode form: where it is equal, two texts count as one."""
    if text.isascii():
        return text.lower().translate(IGNORED_ASCII)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(character for character in text if unicodedata.category(character)[0] not in IGNORED)


def choose_diverse(
    source: str, candidates: Sequence[str], scores: Sequence[float], n: int, diversity: float
) -> list[int]:
    """Choose candidates in turn by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each is the one with most of `(1 - diversity) * score - diversity * likeness`, where likeness is the mean of two
    shares of n-grams (`ngram_share`): that which a candidate has in common with the source, so that 1 less that is its
    PINC, and the greatest that it has in common with one chosen before, averaged over both directions. Beyond the
    paper, which knows the latter alone: sets are to be unlike the source as well. At 0 these are the `n` of the
    highest scores.

    Args:
        source: The text.
        candidates: Its paraphrases.
        scores: A number for each, from 0 to 1.
        n: Maximum number to choose.
        diversity: From 0 to 1.

    Returns:
        Their places, in the order in which they were chosen; of equals, what comes first.
    """
    *grams, of_source = (_ngram_sets(words) for words in split_words([*candidates, source], lowercase=True))
    to_source, to_chosen = [_share(each, of_source) for each in grams], [0.0] * len(grams)
    chosen: list[int] = []
    left = list(range(len(grams)))

    def margin(place: int) -> float:
        return (1 - diversity) * scores[place] - diversity * (to_source[place] + to_chosen[place]) / 2

    while left and len(chosen) < n:
        best = max(left, key=margin)
        left.remove(best)
        chosen.append(best)
        for place in left:
            likeness = (_share(grams[place], grams[best]) + _share(grams[best], grams[place])) / 2
            to_chosen[place] = max(to_chosen[place], likeness)
    return chosen


def ngram_share(text: str, other: str) -> float:
    """The share of a text's n-grams that another has, from 0 to 1: the mean over n from 1 to 4, or to its words.

    Case does not count, and each n-gram counts once.
    """
    return _share(*(_ngram_sets(words) for words in split_words([text, other], lowercase=True)))


def _ngram_sets(words: list[str]) -> list[set[tuple[str, ...]]]:
    return [set(ngrams(words, order)) for order in range(1, MAX_ORDER + 1)]


def _share(grams: list[set], others: list[set]) -> float:
    shares = [len(one & other) / len(one) for one, other in zip(grams, others, strict=True) if one]
    return sum(shares) / len(shares) if shares else 0.0
