"""Batches of every epoch: which rows share one, in what order, and their tensors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from accelerate import Accelerator
from datasets import Dataset
from transformers import PreTrainedTokenizerBase


class LengthBatches:
    """Batches of rows of similar length, in an order determined by seed and epoch.

    Rows are sorted by source and target length and cut where a batch is full. An epoch's permutation decides which
    of the rows of equal lengths share a batch, and the order of the batches: padding stays small and every epoch has
    the same number of batches. Batches that make one optimizer step together are neighbours in length, so that two
    accumulated batches of 32 are one of 64.

    Args:
        max_rows: Maximum number of rows in a batch.
        max_tokens: Maximum number of tokens in a batch: its rows times (longest source + longest target). A longer row
            forms its own batch.
        max_padding: Largest share of a batch's tokens that is padding.
        accumulation: Batches that make one optimizer step.
        seed: Seed of the permutations.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        max_rows: int | None = None,
        max_tokens: int | None = None,
        max_padding: float | None = None,
        accumulation: int = 1,
        seed: int = 0,
    ):
        self.accumulation, self.seed = accumulation, seed
        # Target lengths turn back and forth, so that they do not jump where the source length changes.
        self._keys = (np.where(source_lengths % 2, -target_lengths, target_lengths), source_lengths)
        order = np.lexsort(self._keys)
        self._starts = _cut(source_lengths[order], target_lengths[order], max_rows, max_tokens, max_padding)
        self.steps_per_epoch = -(-len(self._starts) // accumulation)

    def in_order(self) -> list[np.ndarray]:
        """The row numbers of each batch, the shortest first, for validation."""
        return np.split(np.lexsort(self._keys), self._starts[1:])

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        """The row numbers of each batch of each optimizer step of an epoch, from 0."""
        random = np.random.default_rng((self.seed, epoch))
        ties = random.permutation(len(self._keys[0]))
        batches = np.split(np.lexsort((ties, *self._keys)), self._starts[1:])
        steps = [batches[start : start + self.accumulation] for start in range(0, len(batches), self.accumulation)]
        return [steps[number] for number in random.permutation(len(steps))]


def _cut(
    sources: np.ndarray, targets: np.ndarray, max_rows: int | None, max_tokens: int | None, max_padding: float | None
) -> list[int]:
    """The positions in the sorted lengths where batches start."""
    most_rows, most_tokens = max_rows or len(sources), math.inf if max_tokens is None else max_tokens
    least_words = 0.0 if max_padding is None else 1 - max_padding
    starts, longest_target, words = [0], 0, 0
    for position, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        rows, longest_target, words = position - starts[-1], max(longest_target, target), words + source + target
        # The sources ascend, so this row's is the longest.
        tokens = (rows + 1) * (source + longest_target)
        if rows and (rows == most_rows or tokens > most_tokens or words < least_words * tokens):
            starts.append(position)
            longest_target, words = target, source + target
    return starts


Batch = dict[str, torch.Tensor]
Collator = Callable[[Sequence[dict[str, Any]]], Batch]

# Columns of token ids, and the mask of each; columns of labels.
MASKS = {
    "input_ids": "attention_mask",
    "pair_input_ids": "pair_attention_mask",
    "retrieved_source_ids": "retrieved_source_mask",
    "retrieved_target_ids": "retrieved_target_mask",
}
LABELS = ("labels", "source_level_labels", "target_level_labels")


class PairCollator:
    """Makes tensors of lists of ids of several lengths, padded on the right; labels by -100, which losses ignore."""

    def __init__(self, pad_token_id: int):
        self.pad_token_id = pad_token_id

    def __call__(self, features: Sequence[dict[str, Any]]) -> Batch:
        """Make `(batch, longest)` of each column in `MASKS` and `LABELS` that the rows have, and the masks."""
        batch = {}
        for name in (name for name in (*MASKS, *LABELS) if name in features[0]):
            rows = [feature[name] for feature in features]
            batch[name] = pad_rows(rows, -100 if name in LABELS else self.pad_token_id)
            if name in MASKS:
                batch[MASKS[name]] = pad_rows([[1] * len(row) for row in rows], 0)
        return batch


class CopyCollator(PairCollator):
    """For a model that copies: first numbers the words outside the tokenizer's vocabulary in each row anew.

    The first such word gets the id `vocab_size`, the second the next, and so on, in the columns `copied` and labels.
    Words outside that are not copied, or are in another column, become the unknown word.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, copied: Sequence[str]):
        super().__init__(tokenizer.pad_token_id)
        self.vocab_size, self.unk_token_id, self.copied = len(tokenizer), tokenizer.unk_token_id, copied

    def __call__(self, features: Sequence[dict[str, Any]]) -> Batch:
        return super().__call__([feature | self._number(feature) for feature in features])

    def _number(self, feature: dict[str, Any]) -> dict[str, list[int]]:
        outside = dict.fromkeys(word for name in self.copied for word in feature[name] if word >= self.vocab_size)
        numbers = {word: self.vocab_size + number for number, word in enumerate(outside)}
        return {
            name: [word if word < self.vocab_size else known.get(word, self.unk_token_id) for word in feature[name]]
            for name in (*MASKS, "labels")
            if name in feature
            for known in [numbers if name in (*self.copied, "labels") else {}]
        }


def pad_rows(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    """Make `(rows, longest)` of rows of several lengths, filled up with `value` on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long)


def share_batches(
    batches: Iterable[np.ndarray],
    make_batch: Callable[[Sequence[int]], Batch],
    accelerator: Accelerator,
) -> Iterator[tuple[Batch, np.ndarray]]:
    """Make the tensors of this process's share of each batch, of which every process gives the same row numbers.

    Yields:
        The tensors, and the rows among them that count. A process without a row gets the batch's first one, which
        does not: its model has to run all the same, for the processes to meet when gradients are averaged.
    """
    for rows in batches:
        share = rows[accelerator.process_index :: accelerator.num_processes]
        batch = make_batch((share if len(share) else rows[:1]).tolist())
        yield {name: tensor.to(accelerator.device) for name, tensor in batch.items()}, share


def token_counts(encoded: Dataset, column: str) -> np.ndarray:
    """The number of elements in each row's list of a column, without making Python objects of them."""
    return np.diff(_read_column(encoded, column).offsets)


def value_counts(encoded: Dataset, column: str, size: int) -> np.ndarray:
    """The count of each number below `size` in the lists of a column, `(size,)`."""
    return np.bincount(_read_column(encoded, column).flatten().to_numpy(), minlength=size)


def fingerprint(encoded: Dataset) -> str:
    """A digest of all numbers in all columns and of where lists end."""
    digest = hashlib.sha256()
    for column in sorted(encoded.column_names):
        values = _read_column(encoded, column)
        while pa.types.is_list(values.type):
            digest.update(np.diff(values.offsets))
            values = values.flatten()
        digest.update(values.to_numpy(zero_copy_only=False))
    return digest.hexdigest()


def _read_column(encoded: Dataset, column: str) -> pa.Array:
    return encoded.with_format("arrow")[:][column].combine_chunks()


class ShuffledDocuments:
    """Batches of rows from many documents, in an order that only seed and epoch decide (Traynor 2018, section 3.1.2).

    Every epoch takes the documents in a new order, up to `interleaved` of them side by side, a row of each in turn,
    and shuffles the stream `buffer_size` rows at a time. Only row numbers are held, eight bytes each: the rows stay
    in their file until they are needed.

    Args:
        documents: The document of each row, ascending.
        accumulation: Batches that make one optimizer step.
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
        self.steps_per_epoch = -(-self._rows // (batch_size * accumulation))

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        """The row numbers of each batch of each optimizer step of an epoch, from 0."""
        random = np.random.default_rng((self.seed, epoch))
        documents = [self._documents[number] for number in random.permutation(len(self._documents))]
        rows = np.fromiter(interleave(documents, self.interleaved), dtype=np.int64, count=self._rows)
        for start in range(0, self._rows, self.buffer_size):
            random.shuffle(rows[start : start + self.buffer_size])
        batches = np.split(rows, range(self.batch_size, self._rows, self.batch_size))
        return [batches[start : start + self.accumulation] for start in range(0, len(batches), self.accumulation)]


def interleave(documents: list[tuple[int, int]], at_once: int) -> Iterator[int]:
    """Take a row of each of `at_once` documents in turn; where one ends, the next that waits takes its place.

    A document is its first row and its end.
    """
    waiting = (range(*document) for document in documents)
    places = [chain.from_iterable(waiting) for _ in range(at_once)]
    for rows in zip_longest(*places):
        yield from (row for row in rows if row is not None)


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
        passes = np.array([len(self._pass(rows, np.random.default_rng(0))) for rows in self.rows])
        self.sizes = passes if shares is None else share_out(passes.sum(), shares)

    def __call__(self, epoch: int) -> np.ndarray:
        """The numbers of an epoch's rows, ascending."""
        # The third number sets these draws apart from those that order the batches.
        random = np.random.default_rng((self.seed, epoch, 3))
        drawn = [self._draw(rows, size, random) for rows, size in zip(self.rows, self.sizes, strict=True)]
        return np.sort(np.concatenate(drawn))

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
        limits: Other arguments of `LengthBatches`.
    """

    def __init__(
        self, draw: Callable[[int], np.ndarray], source_lengths: np.ndarray, target_lengths: np.ndarray, **limits: Any
    ):
        super().__init__(source_lengths, target_lengths, **limits)
        self._draw, self._lengths, self._limits = draw, (source_lengths, target_lengths), limits
        self.steps_per_epoch = self._batches(draw(0)).steps_per_epoch

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        rows = self._draw(epoch)
        steps = self._batches(rows).epoch(epoch)
        numbers = np.resize(np.arange(len(steps)), self.steps_per_epoch)
        return [[rows[batch] for batch in steps[number]] for number in numbers]

    def _batches(self, rows: np.ndarray) -> LengthBatches:
        return LengthBatches(*(lengths[rows] for lengths in self._lengths), **self._limits)


def share_out(total: int, shares: np.ndarray) -> np.ndarray:
    """Divide a number of rows by shares that add up to 1; at least one for each."""
    ends = np.rint(np.cumsum(shares) * total).astype(int)
    return np.maximum(np.diff(ends, prepend=0), 1)
