"""Sequences of different lengths without padding: packed step by step, so that one fused call runs over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """Runs of consecutive items, packed as `torch.nn.utils.rnn.PackedSequence` has them: first items first.

    Args:
        count: Number of runs, empty ones included.
        items: The item at each packed position, `(total,)`.
        run: The run that it belongs to, `(total,)`.
        step: Its number in the run, `(total,)`.
        sizes: For each step how many runs are that long.
        lengths: The length of each run, `(count,)`.
    """

    count: int
    items: Tensor
    run: Tensor
    step: Tensor
    sizes: list[int]
    lengths: Tensor

    @classmethod
    def of(cls, starts: Tensor, lengths: Tensor) -> Ragged:
        """Lay out runs that start at items `starts` and have `lengths` items each, both `(count,)`."""
        order = lengths.argsort(descending=True, stable=True)
        longest = int(lengths.max()) if len(lengths) else 0
        steps = torch.arange(longest, device=lengths.device)
        sizes = (lengths.unsqueeze(0) > steps.unsqueeze(1)).sum(dim=1)
        step = steps.repeat_interleave(sizes)
        rank = torch.arange(len(step), device=lengths.device) - (sizes.cumsum(0) - sizes)[step]
        run = order[rank]
        return cls(len(lengths), starts[run] + step, run, step, sizes.tolist(), lengths)

    def pad(self, packed: Tensor) -> Tensor:
        """Lay packed items `(total, width)` out as `(count, longest, width)`, zero where a run has ended."""
        padded = packed.new_zeros(self.count, max(len(self.sizes), 1), packed.shape[-1])
        return padded.index_put_((self.run, self.step), packed)

    def mask(self) -> Tensor:
        """Mask of the padded layout, `(count, longest)`."""
        steps = torch.arange(max(len(self.sizes), 1), device=self.lengths.device)
        return steps < self.lengths.unsqueeze(1)

    def unpack(self, packed: Tensor, total: int) -> Tensor:
        """Put packed items back into the order of all `total` items, zero where an item is in no run."""
        return packed.new_zeros(total, packed.shape[-1]).index_put_((self.items,), packed)


@dataclass(frozen=True)
class Words:
    """The words of a batch of flat streams of characters; words and symbols are numbered through the batch.

    A mark closes the word of the characters before it. STOP is nothing but a mark; START and END are also the last,
    and mostly the only, character of the word that they close. What follows a row's last mark is a word still open.

    Args:
        real: Which positions hold symbols, `(batch, length)`.
        ids: The symbols, row by row, `(symbols,)`.
        closes: Which of them are marks, `(symbols,)`.
        starts: The first symbol of each word, `(words,)`.
        characters: The number of each word's characters, `(words,)`.
        sentences: The words of every row.
    """

    real: Tensor
    ids: Tensor
    closes: Tensor
    starts: Tensor
    characters: Tensor
    sentences: Ragged

    def ends(self) -> Tensor:
        """The last symbol of each word, `(words,)`."""
        return torch.cat((self.starts, self.starts.new_tensor([len(self.ids)])))[1:] - 1


@torch.compiler.disable
def find_words(ids: Tensor, real: Tensor, stop_token_id: int, word_marks: list[int]) -> Words:
    """Find the words of each row of symbols `(batch, length)`, whose `real` ones may be anywhere.

    STOP ends a word; `word_marks`, START and END, are characters too.
    """
    rows = torch.arange(len(ids), device=ids.device).unsqueeze(1).expand_as(ids)[real]
    ids = ids[real]
    is_stop = ids == stop_token_id
    closes = is_stop | torch.isin(ids, torch.tensor(word_marks, device=ids.device))
    begins = torch.ones_like(closes)
    begins[1:] = closes[:-1] | (rows[1:] != rows[:-1])
    word = begins.cumsum(0) - 1
    starts = begins.nonzero().squeeze(1)
    characters = torch.zeros_like(starts).index_add(0, word, (~is_stop).long())
    per_row = torch.bincount(rows[starts], minlength=len(real))
    sentences = Ragged.of(per_row.cumsum(0) - per_row, per_row)
    return Words(real, ids, closes, starts, characters, sentences)


def at_symbols(words: Words, items: Tensor, values: Tensor) -> Tensor:
    """Scatter values `(items, width)` to the positions of the symbols `items`: `(batch, length, width)`, zero
    elsewhere."""
    flat = words.real.flatten().nonzero().squeeze(1)[items]
    batch_size, length = words.real.shape
    spread = values.new_zeros(batch_size * length, values.shape[-1]).index_put_((flat,), values)
    return spread.view(batch_size, length, values.shape[-1])


@torch.compiler.disable
def spellings(symbols: Tensor, words: Ragged) -> tuple[Tensor, Tensor]:
    """Find one word of each spelling, `(spellings,)`, and the spelling of each word, `(words,)`."""
    padded = words.pad(symbols[words.items].unsqueeze(1) + 1).squeeze(-1)
    kinds, kind = padded.unique(dim=0, return_inverse=True)
    numbers = torch.arange(words.count, device=symbols.device)
    return numbers.new_zeros(len(kinds)).scatter(0, kind, numbers), kind
