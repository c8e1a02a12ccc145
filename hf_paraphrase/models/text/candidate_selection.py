"""Choosing one of several paraphrases by rules that need no model, so that every checkpoint can bring them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

TOKEN = re.compile(r"\w+|[^\w\s]")
LONGEST_NGRAM = 4


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text, in lower case and in one Unicode form (NFKC)."""
    return TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def token_set(text: str) -> set[str]:
    """The different ones of `tokens`."""
    return set(tokens(text))


def jaccard_similarity(first: str, second: str) -> float:
    """Tokens that two texts share, as a part of all tokens of both; 0.0 where neither has any."""
    first_tokens, second_tokens = token_set(first), token_set(second)
    union = first_tokens | second_tokens
    return len(first_tokens & second_tokens) / len(union) if union else 0.0


def select_by_jaccard(sources: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[int]:
    """For each source the place of the candidate most like it, the first of equals.

    Source: Kazemnejad et al. 2020, section 4.3, which so chooses from the beam.
    """
    return [
        _place_of_best([jaccard_similarity(source, text) for text in texts])
        for source, texts in zip(sources, candidates, strict=True)
    ]


def select_by_difference(sources: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[int]:
    """For each source the place of the first candidate with other words, or another order, and no obvious fault.

    Faults are a lost name (a word with a capital letter or a digit, but for the first of a text) or emoji, a word
    twice in a row, and a beginning without the capital of the source. 0 where each has one or the source's words.
    """
    places = []
    for source, texts in zip(sources, candidates, strict=True):
        words, names = _alphanumeric_tokens(source), _names(source)
        emoji = {character for character in source if unicodedata.category(character) == "So"}
        found = map(_alphanumeric_tokens, texts)
        is_wanted = [
            others != words
            and names <= set(others)
            and emoji <= set(text)
            and _repeats(others) <= _repeats(words)
            and text[:1].isupper() >= source[:1].isupper()
            for text, others in zip(texts, found, strict=True)
        ]
        places.append(is_wanted.index(True) if any(is_wanted) else 0)
    return places


def select_by_mbr(candidates: Sequence[Sequence[str]]) -> list[int]:
    """For each source, the index of the candidate with which the others agree most; ties go to the first.

    The candidates stand for what the model holds likely, as samples do best: chosen is the one with the highest mean
    BLEU against each of them as its reference.

    Source: minimum Bayes risk decoding, Kumar and Byrne 2004, with the smoothed BLEU of Lin and Och 2004.
    """
    return [_place_of_best(mean_bleu(texts)) for texts in candidates]


def select_by_score(scores: Sequence[Sequence[float]]) -> list[int]:
    """For each source the place of the candidate with the highest score, the first of equals."""
    return [_place_of_best(list(map(float, values))) for values in scores]


def _alphanumeric_tokens(text: str) -> list[str]:
    return [token for token in tokens(text) if token.isalnum()]


def _repeats(words: Sequence[str]) -> set[str]:
    return {first for first, second in pairwise(words) if first == second}


def _names(text: str) -> set[str]:
    words = [word for word in TOKEN.findall(unicodedata.normalize("NFKC", text)) if word.isalnum() and word != "I"]
    is_headline = not any(word.islower() for word in words)
    names = (word for word in words[1:] if not word.islower())
    return {word.casefold() for word in names if word[0].isdigit() or not is_headline}


def _place_of_best(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def mean_bleu(texts: Sequence[str]) -> list[float]:
    """The mean smoothed BLEU of each text against all of them, itself among them."""
    found = [tuple(tokens(text)) for text in texts]
    counts = Counter(found)
    ngrams = {words: [_count_ngrams(words, order) for order in range(1, LONGEST_NGRAM + 1)] for words in counts}
    means = {
        one: sum(count * _smoothed_bleu(ngrams[one], ngrams[other]) for other, count in counts.items()) / len(texts)
        for one in counts
    }
    return [means[words] for words in found]


def _count_ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


def _smoothed_bleu(text: Sequence[Counter], reference: Sequence[Counter]) -> float:
    """From the n-gram counts of each length, with add-one smoothing above unigrams."""
    length, wanted = text[0].total(), reference[0].total()
    if not length:
        return float(not wanted)
    precision = 1.0
    for longer, (own, other) in enumerate(zip(text, reference, strict=True)):
        precision *= ((own & other).total() + bool(longer)) / (own.total() + bool(longer))
    return precision ** (1 / len(text)) * min(1.0, math.exp(1 - wanted / length))
