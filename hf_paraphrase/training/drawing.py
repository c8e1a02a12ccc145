"""The rows of an epoch, if each epoch samples its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batching import LengthBatches

__all__ = ["DrawnBatches", "EpochDraw", "share_out"]


class EpochDraw:
    """Draws the rows of an epoch: some of each group, and of each corpus its share.

    The draw follows from seed and epoch alone, so that a resumed run and every process make the same one. An epoch has
    as many rows as one pass over all corpora, in which each group gives its pairs. A corpus whose share is larger than
    its pass is passed over again, with other pairs; one whose share is smaller gives a part of its pass.

    Args:
        groups: The group of each row; no two corpora have one in common.
        corpora: The corpus of each row, from 0; None if there is only one.
        shares: The part of each corpus of an epoch, which add up to 1; None gives each its pass.
        pairs_per_group: Rows of a group in a pass, all different; None takes all.
        seed: Seed of all draws.
    """

    def __init__(
        self,
        groups: np.ndarray,
        corpora: np.ndarray | None = None,
        shares: np.ndarray | None = None,
        pairs_per_group: int | None = None,
        seed: int = 0,
    ):
        self.groups, self.pairs_per_group, self.seed = groups, pairs_per_group, seed
        corpora = np.zeros(len(groups), int) if corpora is None else corpora
        self.rows = [np.flatnonzero(corpora == corpus) for corpus in range(corpora.max() + 1)]
        passes = np.array([self._pass_size(rows) for rows in self.rows])
        self.sizes = passes if shares is None else share_out(passes.sum(), shares)

    def __call__(self, epoch: int) -> np.ndarray:
        """The numbers of an epoch's rows, ascending."""
        # The third number sets these draws apart from those that order the batches.
        random = np.random.default_rng((self.seed, epoch, 3))
        drawn = [self._draw(rows, size, random) for rows, size in zip(self.rows, self.sizes, strict=True)]
        return np.sort(np.concatenate(drawn))

    def _pass_size(self, rows: np.ndarray) -> int:
        if self.pairs_per_group is None:
            return len(rows)
        _, counts = np.unique(self.groups[rows], return_counts=True)
        return int(np.minimum(counts, self.pairs_per_group).sum())

    def _draw(self, rows: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
        """A number of rows of a corpus: whole passes, then part of one."""
        drawn, missing = [], size
        while missing > 0:
            one = self._pass(rows, random)
            drawn.append(one if len(one) <= missing else random.choice(one, missing, replace=False))
            missing -= len(drawn[-1])
        return np.concatenate(drawn)

    def _pass(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Some rows of each group."""
        if self.pairs_per_group is None:
            return rows
        rows = rows[np.lexsort((random.random(len(rows)), self.groups[rows]))]
        _, starts, counts = np.unique(self.groups[rows], return_index=True, return_counts=True)
        return rows[np.arange(len(rows)) - np.repeat(starts, counts) < self.pairs_per_group]


class DrawnBatches(LengthBatches):
    """Batches of the rows that are drawn for an epoch, cut by their own lengths, so that padding stays small.

    A draw may make a few batches more or fewer than that of the first epoch, whose number all epochs have: the last of
    the epoch's order are then left out, or the first ones come twice.

    Args:
        draw: The numbers of the rows of an epoch.
        source_lengths: Tokens of each row's source, of all rows.
        target_lengths: Tokens of each row's target.
        limits: Other arguments of `LengthBatches`.
    """

    def __init__(
        self, draw: Callable[[int], np.ndarray], source_lengths: np.ndarray, target_lengths: np.ndarray, **limits: Any
    ):
        super().__init__(source_lengths, target_lengths, **limits)
        self._draw, self._lengths, self._limits = draw, (source_lengths, target_lengths), limits
        self._steps = self._batches(draw(0)).steps_per_epoch

    @property
    def steps_per_epoch(self) -> int:
        return self._steps

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        rows = self._draw(epoch)
        steps = self._batches(rows).epoch(epoch)
        return [[rows[batch] for batch in steps[number]] for number in np.resize(np.arange(len(steps)), self._steps)]

    def _batches(self, rows: np.ndarray) -> LengthBatches:
        return LengthBatches(*(lengths[rows] for lengths in self._lengths), **self._limits)


def share_out(total: int, shares: np.ndarray) -> np.ndarray:
    """Divide a number of rows by shares that add up to 1; at least one for each."""
    ends = np.rint(np.cumsum(shares) * total).astype(int)
    return np.maximum(np.diff(ends, prepend=0), 1)
