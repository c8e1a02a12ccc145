"""The edits of TER, shifts included: sacrebleu's figures and so tercom's, less the work that cannot change them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from sacrebleu.metrics.lib_ter import BeamEditDistance, trace_to_alignment

from .distance import EditDistance

# sacrebleu looks for edits so many words to either side of the diagonal.
_BEAM = 24
# Limits of tercom and sacrebleu, which affect the scores.
_LONGEST_SHIFT, _FARTHEST_SHIFT, _MOST_CANDIDATES = 10, 50, 1000
_SWAP_SIDES = str.maketrans("id", "di")


def fewest_edits(words: list[str], references: Sequence[list[str]]) -> int:
    """The edits from a text, as tokens, to the reference that needs fewest, as sacrebleu counts them.

    Most searches for shifts cannot change the result. No shift brings the edits below the number of words that have no
    partner in the other text, each shift is an edit itself, and none is made that does not save at least what it
    costs. So the edits without shifts are a bound from above, the unmatched words and one shift a bound from below,
    and only where these leave room is there a search.
    """
    counts = Counter(words)
    fewest, searches = math.inf, []
    for reference in references:
        distance = EditDistance(reference)
        least = _unmatched_words(counts, len(words), reference)
        without_shifts = distance(words)
        if _in_beam(without_shifts, words, reference):
            fewest = min(fewest, without_shifts)
            searches.append((least + 1, least, reference, distance))
        else:
            searches.append((least, least, reference, distance))
    for bound, least, reference, distance in sorted(searches, key=lambda search: search[0]):
        if bound >= fewest:
            break
        fewest = min(fewest, _edits_with_shifts(words, reference, distance, least))
    return int(fewest)


def _unmatched_words(counts: Counter[str], length: int, reference: list[str]) -> int:
    """How many edits there must be at least, however the words are ordered."""
    left, matched = counts.copy(), 0
    for word in reference:
        if left[word] > 0:
            left[word] -= 1
            matched += 1
    return max(length, len(reference)) - matched


def _in_beam(distance: int, words: list[str], reference: list[str]) -> bool:
    """Whether sacrebleu's beam contains all alignments with that many edits: they deviate by their insertions or
    deletions."""
    return (distance + abs(len(words) - len(reference))) // 2 <= _BEAM


def _edits_with_shifts(words: list[str], reference: list[str], distance: EditDistance, least: int) -> int:
    """Edits after greedily shifting runs of words for as long as that saves some."""
    if not reference:
        return len(words)
    beam, shifts, tried = BeamEditDistance(reference), 0, 0
    while True:
        columns = distance.columns(words)
        edits = columns[-1][2]
        if _in_beam(edits, words, reference):
            trace = distance.trace(columns, words)
        else:
            edits, trace = beam(words)
        # One more shift could at best save the one edit that it costs.
        if edits <= least + 1:
            return shifts + edits

        def saves(shifted: list[str], same: int, edits: int = edits, columns: list = columns) -> int:
            shifted_edits = distance.resume(columns[same], shifted[same:])
            if shifted_edits < edits and not _in_beam(shifted_edits, shifted, reference):
                shifted_edits = beam(shifted)[0]
            return edits - shifted_edits

        gain, shifted, tried = _best_shift(words, reference, trace, saves, edits - least, tried)
        if not gain or tried >= _MOST_CANDIDATES:
            return shifts + edits
        words, shifts = shifted, shifts + 1


def _best_shift(
    words: list[str],
    reference: list[str],
    trace: str,
    saves: Callable[[list[str], int], int],
    most: int,
    tried: int,
) -> tuple[int, list[str], int]:
    """The shift that saves most edits, if any does; then the longest, the leftmost, the one to the leftmost place.

    Of a text and a reference, `trace` says how to edit the one into the other, `saves` how many edits a shifted text
    saves, given how many words at its beginning are the same, `most` how many a shift can save, `tried` how many
    candidates there have been. Returns the saving, the shifted words, and the number of candidates so far.
    """
    positions, reference_errors, word_errors = trace_to_alignment(trace.translate(_SWAP_SIDES))
    wrong_words, wrong_references = ([0, *accumulate(errors)] for errors in (word_errors, reference_errors))
    best: tuple[int, ...] = (0,)
    best_words = words
    for start, target, length in _matching_runs(words, reference):
        stop = start + length
        if wrong_words[stop] == wrong_words[start] or wrong_references[target + length] == wrong_references[target]:
            continue
        if start <= positions[target] < stop:
            continue
        previous = None
        for offset in range(target - 1, target + length):
            place = 0 if offset < 0 else positions[offset] + 1
            if place == previous:
                continue
            previous = place
            tried += 1
            if (most, length, -start, -place) <= best:
                continue
            shifted = _shift(words, start, stop, place)
            candidate = (saves(shifted, min(start, place)), length, -start, -place)
            if candidate[0] > 0 and candidate > best:
                best, best_words = candidate, shifted
        if tried >= _MOST_CANDIDATES:
            break
    return best[0], best_words, tried


def _matching_runs(words: list[str], reference: list[str]) -> Iterator[tuple[int, int, int]]:
    """All runs of words that both sides have: where it starts in either, and its length."""
    places: dict[str, list[int]] = {}
    for index, word in enumerate(reference):
        places.setdefault(word, []).append(index)
    for start, word in enumerate(words):
        for target in places.get(word, ()):
            if abs(target - start) > _FARTHEST_SHIFT:
                continue
            yield start, target, 1
            longest = min(_LONGEST_SHIFT, len(words) - start, len(reference) - target)
            for length in range(2, longest + 1):
                if words[start + length - 1] != reference[target + length - 1]:
                    break
                yield start, target, length


def _shift(words: list[str], start: int, stop: int, place: int) -> list[str]:
    """Move the words from `start` to `stop` in front of `place`; a place inside them counts from their end on."""
    run = words[start:stop]
    if place < start:
        return words[:place] + run + words[place:start] + words[stop:]
    after = place if place > stop else place + stop - start
    return words[:start] + words[stop:after] + run + words[after:]
