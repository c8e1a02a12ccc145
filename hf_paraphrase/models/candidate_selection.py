"""Choosing one of several paraphrases by rules that need no model, so that every checkpoint can bring them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["jaccard_similarity", "select_by_jaccard", "select_by_score", "token_set", "tokens"]

TOKEN = re.compile(r"\w+|[^\w\s]")


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


def select_by_score(scores: Sequence[Sequence[float]]) -> list[int]:
    """For each source the place of the candidate with the highest score, the first of equals."""
    return [_place_of_best(list(map(float, values))) for values in scores]


def _place_of_best(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
