"""Looking up token ids, and making decoder inputs of labels, for every encoder-decoder here."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["check_ids", "embed", "shift_tokens_right"]


def check_ids(table: nn.Embedding, ids: torch.Tensor, name: str) -> None:
    """Raise ValueError for an id outside the vocabulary (on the CPU, where looking costs no wait)."""
    if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
        low, high = ids.min().item(), ids.max().item()
        if low < 0 or high >= table.num_embeddings:
            raise ValueError(
                f"`{name}` holds the id {low if low < 0 else high}, but the vocabulary has {table.num_embeddings} "
                "words; was it made by another checkpoint's tokenizer?"
            )


def embed(table: nn.Embedding, ids: torch.Tensor, name: str) -> torch.Tensor:
    """Look up ids, with a clear error for one outside the vocabulary."""
    check_ids(table, ids, name)
    return table(ids)


def shift_tokens_right(labels: torch.Tensor, pad_token_id: int, decoder_start_token_id: int) -> torch.Tensor:
    """Make decoder inputs from labels: the start token precedes each row's first word, -100 becomes padding."""
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = decoder_start_token_id
    before = torch.nn.functional.pad(labels[:, :-1] != -100, (1, 0)).cummax(dim=1).values
    shifted = torch.where(before, shifted, decoder_start_token_id)
    return shifted.masked_fill(shifted == -100, pad_token_id)
