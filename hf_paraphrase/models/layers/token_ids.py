"""Looking up and checking token ids, and making decoder inputs of labels, for every encoder-decoder here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor, nn


def check_ids(table: nn.Embedding, ids: Tensor, name: str) -> None:
    """Raise ValueError for an id outside the vocabulary (on the CPU, where looking costs no wait)."""
    if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
        low, high = ids.min().item(), ids.max().item()
        if low < 0 or high >= table.num_embeddings:
            raise ValueError(
                f"`{name}` holds the id {low if low < 0 else high}, but the vocabulary has {table.num_embeddings} "
                "words; was it made by another checkpoint's tokenizer?"
            )


def embed(table: nn.Embedding, ids: Tensor, name: str) -> Tensor:
    """Look up ids, with a clear error for one outside the vocabulary."""
    check_ids(table, ids, name)
    return table(ids)


def check_pair(
    input_ids: Tensor | None, source_ids: Tensor | None, target_ids: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three, or raise ValueError unless there are texts, and for each a retrieved pair to edit it by."""
    if input_ids is None or source_ids is None or target_ids is None:
        found = {"input_ids": input_ids, "retrieved_source_ids": source_ids, "retrieved_target_ids": target_ids}
        name = next(name for name, ids in found.items() if ids is None)
        raise ValueError(
            f"`{name}` is missing: this model edits by a retrieved pair, so it needs `input_ids`, "
            "`retrieved_source_ids` and `retrieved_target_ids` (`ParaphraseRetriever` finds pairs)"
        )
    texts, sources, targets = input_ids.shape[0], source_ids.shape[0], target_ids.shape[0]
    if not texts == sources == targets:
        raise ValueError(f"{texts} sources have {sources} retrieved sources and {targets} targets")
    return input_ids, source_ids, target_ids


def join_rows(states: Sequence[Tensor], masks: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Put batches of several lengths below each other, filled up on the right."""
    length = reduce(torch.sym_max, (mask.shape[1] for mask in masks))
    missing = [length - mask.shape[1] for mask in masks]
    states = [nn.functional.pad(part, (0, 0, 0, size)) for part, size in zip(states, missing, strict=True)]
    masks = [nn.functional.pad(part, (0, size)) for part, size in zip(masks, missing, strict=True)]
    return torch.cat(states), torch.cat(masks)


def shift_tokens_right(labels: Tensor, pad_token_id: int, decoder_start_token_id: int) -> Tensor:
    """Make decoder inputs from labels: the start token precedes each row's first word, -100 becomes padding."""
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = decoder_start_token_id
    before = torch.nn.functional.pad(labels[:, :-1] != -100, (1, 0)).cummax(dim=1).values
    shifted = torch.where(before, shifted, decoder_start_token_id)
    return shifted.masked_fill(shifted == -100, pad_token_id)
