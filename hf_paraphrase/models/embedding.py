from __future__ import annotations

import torch
from torch import nn

__all__ = ["embed"]


def embed(table: nn.Embedding, ids: torch.LongTensor, name: str) -> torch.Tensor:
    """Look up ids, with a clear error for one outside the vocabulary (on the CPU, where looking costs no wait)."""
    if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
        low, high = ids.min().item(), ids.max().item()
        if low < 0 or high >= table.num_embeddings:
            raise ValueError(
                f"`{name}` holds the id {low if low < 0 else high}, but the vocabulary has {table.num_embeddings} "
                "words; was it made by another checkpoint's tokenizer?"
            )
    return table(ids)
