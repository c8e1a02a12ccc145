from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Two lists of tokens.
Pair = tuple[Sequence[str], Sequence[str]]

# Pairs that are computed together.
_AT_ONCE = 2048


def weighted_lcs(pairs: Sequence[Pair], weight: float) -> np.ndarray:
    """Weighted longest common subsequence of each pair of token lists, `(pairs,)`; a run of k tokens is worth
    `k**weight`.

    The table of a pair is filled diagonal by diagonal, for many pairs at once. It follows the source to the letter: a
    match is always taken, also where leaving it out would score more. A weight of 1 gives the plain subsequence.

    Source: Lin 2004, section 4.
    """
    lengths = np.array([(len(x), len(y)) for x, y in pairs]).reshape(len(pairs), 2)
    gains = np.diff(np.arange(int(lengths.max(initial=0)) + 2, dtype=float) ** weight)
    values = np.zeros(len(pairs))
    order = np.lexsort((lengths[:, 1], lengths[:, 0]))  # pairs of similar length together, to minimise padding
    for start in range(0, len(order), _AT_ONCE):
        chosen = order[start : start + _AT_ONCE]
        values[chosen] = _fill_tables([pairs[index] for index in chosen], lengths[chosen], gains)
    return values


def _fill_tables(pairs: list[Pair], lengths: np.ndarray, gains: np.ndarray) -> np.ndarray:
    x, y = _encode(pairs, lengths)
    (m, n), rows, corners = lengths.max(axis=0), np.arange(len(pairs)), lengths.sum(axis=1)
    # Column i of a diagonal is the cell of i tokens of x; y runs backwards along it.
    y = np.pad(y, ((0, 0), (m, m)), constant_values=-2)[:, ::-1]
    empty = np.zeros((len(pairs), m + 1))
    before, last = (empty, empty.astype(int)), (empty, empty.astype(int))
    values = np.zeros(len(pairs))
    for diagonal in range(2, m + n + 1):
        matches = x == y[:, m + n - diagonal + 1 :][:, :m]
        run, score = before[1][:, :-1], before[0][:, :-1]
        scores, runs = np.zeros_like(empty), np.zeros_like(before[1])
        scores[:, 1:] = np.where(matches, score + gains[run], np.maximum(last[0][:, :-1], last[0][:, 1:]))
        runs[:, 1:] = np.where(matches, run + 1, 0)
        ended = rows[corners == diagonal]
        values[ended] = scores[ended, lengths[ended, 0]]
        before, last = last, (scores, runs)
    return values


def _encode(pairs: list[Pair], lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Token ids, padded with numbers that match nothing."""
    ids: dict[str, int] = {}
    encoded = []
    for side, padding in ((0, -1), (1, -2)):
        array = np.full((len(pairs), lengths[:, side].max()), padding)
        for row, pair in enumerate(pairs):
            array[row, : len(pair[side])] = [ids.setdefault(token, len(ids)) for token in pair[side]]
        encoded.append(array)
    return encoded[0], encoded[1]
