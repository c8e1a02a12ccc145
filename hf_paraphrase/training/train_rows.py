from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict, IterableDataset
from transformers import PreTrainedTokenizerBase

from ..common.errors import InputError
from ..datasets.loading import no_progress_bars
from .tasks import Task
from .tasks.base import NoRowsLeft


@dataclass(frozen=True)
class Portion:
    """Encoded rows in memory, with the optimizer steps over them."""

    rows: Dataset
    counts: np.ndarray  # how much each row counts in the loss, `(rows,)`
    number: int  # of earlier portions; with the seed it determines all random choices for its rows
    steps: list[list[np.ndarray]]  # the row numbers of each batch of each step


class StoredRows:
    """A train split that is stored whole: a portion is an epoch."""

    place = None

    def __init__(self, task: Task, encoded: Dataset):
        self._rows, self._counts, self._batches = encoded, task.counts(encoded), task.make_batches(encoded)
        self.steps_per_epoch = self._batches.steps_per_epoch
        self._portion: Portion | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def epochs(self, step: int) -> float:
        """Passes over the rows after a number of steps."""
        return step / self.steps_per_epoch

    def at(self, step: int) -> tuple[Portion, list[np.ndarray]]:
        """The portion of a step, and its batches."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if self._portion is None or self._portion.number != epoch:
            self._portion = Portion(self._rows, self._counts, epoch, self._batches.epoch(epoch))
        return self._portion, self._portion.steps[position]


@dataclass(frozen=True)
class Place:
    """Where a run is in a stream: what its checkpoint keeps."""

    epoch: int = 0  # passes before this one
    # Where the window begins in this pass, as `IterableDataset.state_dict` says it; None at the start.
    position: dict[str, Any] | None = None
    number: int = 0  # windows before it, of all passes
    first_step: int = 0  # optimizer steps before it
    pairs: int = 0  # rows of the first pass before it


class StreamedRows:
    """A train split that is read while it is trained on: a portion is a window of `shuffle_buffer_size` rows.

    Only the window is in memory. Its rows are encoded, put into batches of similar length and shuffled like those of a
    small corpus, as seed and number of the window decide; from the second pass on `datasets` shuffles the files, too.
    Checkpoints record the `place` where the window begins, so that a resumed run reads it again and continues with the
    next batch. Every process reads all rows and takes its share of each batch.
    """

    steps_per_epoch = None

    def __init__(
        self,
        task: Task,
        tokenizer: PreTrainedTokenizerBase,
        stream: IterableDataset,
        place: dict[str, Any] | None = None,
    ):
        self._task, self._tokenizer = task, tokenizer
        self._place = Place(**place or {})
        size = task.training.shuffle_buffer_size
        self._windows = read_windows(stream, size, self._place.epoch, self._place.position)
        self._portion: Portion | None = None

    def __len__(self) -> int:
        """Rows of the first pass that the run has come to so far."""
        portion = self._portion if self._place.epoch == 0 else None  # of the first pass
        return self._place.pairs + (0 if portion is None else len(portion.rows))

    @property
    def place(self) -> dict[str, Any]:
        """The arguments of a resumed run."""
        return asdict(self._place)

    def epochs(self, step: int) -> float:
        """Whole passes before the one that the run is in."""
        return float(self._place.epoch)

    def at(self, step: int) -> tuple[Portion, list[np.ndarray]]:
        """The portion of a step, and its batches; steps have to be asked for in their order."""
        portion = self._portion or self._read(self._place.number, self._place.first_step, self._place.pairs)
        while step >= (following := self._place.first_step + len(portion.steps)):
            portion = self._read(self._place.number + 1, following, len(self))
        return portion, portion.steps[step - self._place.first_step]

    def _read(self, number: int, first_step: int, pairs: int) -> Portion:
        """Read on to the next window with a row that can be used; the first one had some."""
        for epoch, position, window in self._windows:
            try:
                with no_progress_bars():  # there is that of the training
                    rows = self._task.encode(DatasetDict(train=window), self._tokenizer).splits["train"]
            except NoRowsLeft:
                continue
            steps = self._task.make_batches(rows).epoch(number)
            self._portion = portion = Portion(rows, self._task.counts(rows), number, steps)
            self._place = Place(epoch, position, number, first_step, pairs)
            return portion
        raise RuntimeError("the windows of a stream do not end")


def read_windows(
    stream: IterableDataset, size: int, epoch: int = 0, position: dict[str, Any] | None = None
) -> Iterator[tuple[int, dict[str, Any] | None, Dataset]]:
    """Read the rows of a stream in portions, pass after pass, endlessly.

    Args:
        stream: Rows, not shuffled: a shuffled stream does not find its place again.
        size: Rows of a window; the last one of a pass may have fewer.
        position: Where in the pass `epoch` to begin, as yielded before.

    Yields:
        The pass, where in it the window begins, and the rows.

    Raises:
        InputError: A pass has no rows.
    """
    stream = stream.with_format("arrow")
    while True:
        stream.set_epoch(epoch)
        stream.load_state_dict(position)
        is_empty = position is None
        for table in stream.iter(size):
            is_empty = False
            yield epoch, position, Dataset(table)
            position = stream.state_dict()
        if is_empty:
            raise InputError("split train is empty")
        epoch, position = epoch + 1, None
