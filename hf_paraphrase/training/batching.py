from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PreTrainedTokenizerBase

__all__ = ["LengthBatches", "OutsideWordsMixin", "PairCollator", "number_outside_words", "pad_rows", "share_batches"]


class LengthBatches:
    """Batches of rows of similar length, in an order determined by seed and epoch.

    Rows are sorted by source and target length and cut where a batch is full. An epoch's permutation decides which
    of the rows of equal lengths share a batch, and the order of the batches: padding stays small and every epoch has
    the same number of batches. Batches that make one optimizer step together are neighbours in length, so that two
    accumulated batches of 32 are one of 64.

    Args:
        source_lengths: Tokens of each row's source.
        target_lengths: Tokens of each row's target.
        max_rows: Most rows in a batch.
        max_tokens: Most tokens in a batch: its rows times (longest source + longest target). A longer row forms its
            own batch.
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

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._starts) // self.accumulation)

    def in_order(self) -> list[np.ndarray]:
        """The row numbers of each batch, the shortest first, for validation."""
        return np.split(np.lexsort(self._keys), self._starts[1:])

    def epoch(self, epoch: int) -> list[list[np.ndarray]]:
        """The row numbers of each batch of each optimizer step.

        Args:
            epoch: Number of the epoch, from 0.
        """
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


class PairCollator:
    """Makes tensors of source and target ids of several lengths.

    Args:
        pad_token_id: Fills `input_ids`; `labels` are filled with -100, which losses ignore.
    """

    def __init__(self, pad_token_id: int):
        self.pad_token_id = pad_token_id

    def __call__(self, features: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Pad on the right.

        Args:
            features: Rows of `input_ids` and `labels`.

        Returns:
            `input_ids` and `attention_mask` of shape `(batch, source_length)`, `labels` `(batch, target_length)`.
        """
        sources = [feature["input_ids"] for feature in features]
        return {
            "input_ids": pad_rows(sources, self.pad_token_id),
            "attention_mask": pad_rows([[1] * len(source) for source in sources], 0),
            "labels": pad_rows([feature["labels"] for feature in features], -100),
        }


def number_outside_words(
    feature: dict[str, list[int]], owners: Sequence[str], vocab_size: int, unk_token_id: int
) -> Callable[[list[int]], list[int]]:
    """Number the words of a row that are outside the vocabulary, for a model that copies them.

    The first such word gets the id `vocab_size`, the second the next, and so on.

    Args:
        feature: The row; its ids from `vocab_size` on are words outside the vocabulary.
        owners: Those of its fields whose words can be copied.
        vocab_size: Words of the vocabulary.
        unk_token_id: What all others of these words are.

    Returns:
        What reads a field's ids by these numbers.
    """
    outside = dict.fromkeys(word for name in owners for word in feature[name] if word >= vocab_size)
    numbers = {word: vocab_size + number for number, word in enumerate(outside)}
    return lambda ids: [word if word < vocab_size else numbers.get(word, unk_token_id) for word in ids]


class OutsideWordsMixin:
    """Before a collator, for a model that copies: words outside the vocabulary get numbers by row.

    Args:
        tokenizer: Its vocabulary; the rows' ids from there on are words outside it.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        super().__init__(tokenizer.pad_token_id)
        self.vocab_size, self.unk_token_id = len(tokenizer), tokenizer.unk_token_id

    def __call__(self, features: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        return super().__call__([self.renumber(feature) for feature in features])

    def renumber(self, feature: dict[str, list[int]]) -> dict[str, list[int]]:
        """The fields of a row, read by the numbers that `number_outside_words` gives."""
        raise NotImplementedError


def pad_rows(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    """Make `(rows, longest)` of rows of several lengths, filled up with `value` on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long)


def share_batches(
    batches: Iterable[np.ndarray],
    make_batch: Callable[[Sequence[int]], dict[str, torch.Tensor]],
    accelerator: Accelerator,
) -> Iterator[tuple[dict[str, torch.Tensor], np.ndarray]]:
    """Make the tensors of this process's share of each batch.

    Args:
        batches: Row numbers, the same on every process.
        make_batch: Makes tensors of rows.
        accelerator: Knows this process's number and device.

    Yields:
        The tensors, and the rows among them that count. A process without a row gets the batch's first one, which
        does not: its model has to run all the same, for the processes to meet when gradients are averaged.
    """
    for rows in batches:
        share = rows[accelerator.process_index :: accelerator.num_processes]
        batch = make_batch((share if len(share) else rows[:1]).tolist())
        yield {name: tensor.to(accelerator.device) for name, tensor in batch.items()}, share
