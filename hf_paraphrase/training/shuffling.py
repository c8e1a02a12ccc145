from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

__all__ = ["ShuffledDocuments"]


class ShuffledDocuments:
    """Batches of rows from many documents, in an order that only seed and epoch decide (Traynor 2018, section 3.1.2).

    Every epoch takes the documents in a new order, up to `interleaved` of them side by side, a row of each in turn,
    and shuffles the stream `buffer_size` rows at a time. Only row numbers are held, eight bytes each: the rows stay
    in their file until they are needed.

    Args:
        documents: The document of each row, ascending.
        batch_size: Rows of a batch.
        accumulation: Batches that make one optimizer step.
        buffer_size: Rows that are shuffled together.
        interleaved: Documents that are read side by side.
        seed: Seed of the orders.
    """

    def __init__(
        self,
        documents: np.ndarray,
        batch_size: int,
        accumulation: int = 1,
        buffer_size: int = 4096,
        interleaved: int = 128,
        seed: int = 0,
    ):
        self.batch_size, self.accumulation, self.seed = batch_size, accumulation, seed
        self.buffer_size, self.interleaved = buffer_size, interleaved
        starts = np.flatnonzero(np.diff(documents, prepend=documents[:1] - 1))
        self._documents = list(zip(starts.tolist(), [*starts[1:].tolist(), len(documents)], strict=True))
        self._rows = len(documents)

    @property
    def steps_per_epoch(self) -> int:
        return -(-self._rows // (self.batch_size * self.accumulation))

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        """The row numbers of each batch of each optimizer step.

        Args:
            epoch: Number of the epoch, from 0.
        """
        random = np.random.default_rng((self.seed, epoch))
        documents = [self._documents[number] for number in random.permutation(len(self._documents))]
        rows = np.fromiter(interleave(documents, self.interleaved), dtype=np.int64, count=self._rows)
        for start in range(0, self._rows, self.buffer_size):
            random.shuffle(rows[start : start + self.buffer_size])
        batches = np.split(rows, range(self.batch_size, self._rows, self.batch_size))
        return [batches[start : start + self.accumulation] for start in range(0, len(batches), self.accumulation)]


def interleave(documents: list[tuple[int, int]], at_once: int) -> Iterator[int]:
    """Take a row of each of some documents in turn; where one ends, the next that waits takes its place.

    Args:
        documents: First row and end of each.
        at_once: Documents that are open at the same time.
    """
    waiting = (iter(range(*document)) for document in documents)
    opened: list[Iterator[int] | None] = list(islice(waiting, at_once))
    while opened:
        for place, rows in enumerate(opened):
            row = None if rows is None else next(rows, None)
            while row is None and rows is not None:
                rows = opened[place] = next(waiting, None)
                row = next(rows, None) if rows is not None else None
            if row is not None:
                yield row
        opened = [rows for rows in opened if rows is not None]
