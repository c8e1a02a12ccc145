"""A batch of three short rows, and what the checks of models do with batches."""

from __future__ import annotations

import torch

# Three sources of 6, 4 and 1 words: the lengths that padding has to make equal.
SOURCES = [[5, 6, 7, 8, 9, 2], [9, 4, 7, 2], [2]]
TARGETS = [[6, 5, 2], [4, 9, 8, 7, 2], [2]]


def pad(rows: list[list[int]], side: str, value: int) -> torch.Tensor:
    """Pad rows on the `left`, on the `right`, or `between` their first token and the others."""
    width = max(map(len, rows)) + 1
    padded = torch.full((len(rows), width), value)
    for row, ids in zip(padded, rows, strict=True):
        ids = torch.tensor(ids)
        if side == "left":
            row[width - len(ids) :] = ids
        elif side == "right":
            row[: len(ids)] = ids
        else:
            row[0], row[width - len(ids) + 1 :] = ids[0], ids[1:]
    return padded


def mask_of(name: str) -> str:
    """The name of the mask of some ids."""
    return "attention_mask" if name == "input_ids" else name.replace("_ids", "_mask")


def empty_rows(batch: dict[str, torch.Tensor], rows: list[int]) -> dict[str, torch.Tensor]:
    """A batch in which some rows have no word on any side."""
    emptied = {name: tensor.clone() for name, tensor in batch.items()}
    for name in batch:
        if name.endswith("_mask"):
            emptied[name][rows] = 0
    return emptied


def words_of(sequences: torch.Tensor, eos_token_id: int = 2) -> list[list[int]]:
    """What each row generated: behind the start token, up to its first end mark."""
    rows = [ids[1:].tolist() for ids in sequences]
    return [ids[: ids.index(eos_token_id) + 1] if eos_token_id in ids else ids for ids in rows]
