from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from sacrebleu.metrics.lib_ter import translation_edit_rate

__all__ = ["fewest_edits", "levenshtein"]

# sacrebleu's edit distance looks no further than 25 words off the diagonal; references up to this length lie inside.
_EXACT_LENGTH = 24


def fewest_edits(words: list[str], references: Sequence[list[str]]) -> int:
    """The edits, shifts included, from a text to the reference that needs fewest, as sacrebleu counts them.

    sacrebleu searches for shifts with every reference. Most of these searches cannot change the result: no shift
    brings the edits below the number of words that have no partner in the other text, each shift is an edit itself,
    and none is made that does not save at least what it costs. So the edits without shifts are a bound from above,
    the unmatched words and one shift a bound from below, and only where these leave room does sacrebleu search.

    Args:
        words: The tokens of the text.
        references: The tokens of each reference.
    """
    counts = Counter(words)
    fewest, searches = math.inf, []
    for reference in references:
        least = _unmatched_words(counts, len(words), reference)
        if len(reference) <= _EXACT_LENGTH:
            fewest = min(fewest, levenshtein(words, reference))
            least += 1
        searches.append((least, reference))
    for least, reference in sorted(searches, key=lambda search: search[0]):
        if least >= fewest:
            break
        fewest = min(fewest, translation_edit_rate(words, reference)[0])
    return fewest


def _unmatched_words(counts: Counter[str], length: int, reference: list[str]) -> int:
    """How many edits there must be at least, however the words are ordered."""
    left, matched = counts.copy(), 0
    for word in reference:
        if left[word] > 0:
            left[word] -= 1
            matched += 1
    return max(length, len(reference)) - matched


def levenshtein(a: Sequence[str], b: Sequence[str]) -> int:
    """Edit distance between two lists of words, a column of the table at a time as the bits of one integer.

    Source: Hyyrö 2003, figure 4 (after Myers 1999).
    """
    if not b:
        return len(a)
    positions: dict[str, int] = {}
    for index, word in enumerate(b):
        positions[word] = positions.get(word, 0) | 1 << index
    every, last = (1 << len(b)) - 1, 1 << (len(b) - 1)
    # Bits say where a cell is one more, or one less, than the cell above it.
    more, less, distance = every, 0, len(b)
    for word in a:
        matches = positions.get(word, 0)
        diagonal = (((matches & more) + more) ^ more) | matches | less
        right_more, right_less = less | (every & ~(diagonal | more)), more & diagonal
        distance += bool(right_more & last) - bool(right_less & last)
        right_more, right_less = right_more << 1 | 1, right_less << 1
        more, less = every & (right_less | ~(diagonal | right_more)), every & right_more & diagonal
    return distance
