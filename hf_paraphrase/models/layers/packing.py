"""The order in which LSTMs run over sequences of different lengths at once, all sequences of a step together."""

from __future__ import annotations

from dataclasses import dataclass

import torch

LstmState = tuple[torch.Tensor, torch.Tensor]
"""The pair (h, c), each `(num_layers * num_directions, batch, hidden_size)` as `torch.nn.LSTM` has them."""


@dataclass(frozen=True)
class PackedOrder:
    """The order of words in a packed sequence, the longest sentence first.

    Args:
        words: Indices of the words in packed order.
        sizes: For each step how many sentences are that long.
        sentences: Indices of the sentences that have words, the longest first.
        last: For each of these, the packed position of its last word.
    """

    words: torch.Tensor
    sizes: list[int]
    sentences: torch.Tensor
    last: torch.Tensor


@torch.compiler.disable
def packed_order(sentence: torch.Tensor, number: torch.Tensor, length: torch.Tensor) -> PackedOrder:
    """Order words for one packed call.

    Args:
        sentence: For each word its sentence, from 0, `(words,)`.
        number: For each word its number in the sentence, `(words,)`.
        length: For each sentence its words, `(sentences,)`.
    """
    sentences = length.argsort(descending=True, stable=True)
    rank = sentences.argsort()
    counts = torch.bincount(number)
    starts, sizes = counts.cumsum(0) - counts, counts.tolist()
    place = starts[number] + rank[sentence]
    sentences = sentences[: sizes[0] if sizes else 0]
    last = starts[length[sentences] - 1] + torch.arange(len(sentences), device=length.device)
    return PackedOrder(place.argsort(), sizes, sentences, last)


def order_of_real(mask: torch.Tensor) -> PackedOrder:
    """Order the real positions of a padded batch, as indices of the flat batch.

    Args:
        mask: `(batch, length)`, false at padding, which may be anywhere.
    """
    places = mask.flatten().nonzero().squeeze(1)
    order = packed_order(places // mask.shape[1], (mask.cumsum(1) - 1).flatten()[places], mask.sum(1))
    return PackedOrder(places[order.words], order.sizes, order.sentences, order.last)


def select_states(state: LstmState, rows: torch.Tensor) -> LstmState:
    """Return the states of some rows."""
    h, c = state
    return h.index_select(1, rows), c.index_select(1, rows)


def replace_states(state: LstmState, rows: torch.Tensor, new: LstmState) -> LstmState:
    """Return the states with those of some rows replaced."""
    h, c = (part.index_copy(1, rows, of_rows.to(part.dtype)) for part, of_rows in zip(state, new, strict=True))
    return h, c
