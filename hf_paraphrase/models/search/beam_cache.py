"""A key-value cache whose beams change places when the next token joins them, not before."""

from __future__ import annotations

from typing import cast

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer


def keep_by_time(cache: object) -> None:
    """Replace the self-attention layers of a transformers cache by `BeamLayer`s, if they grow in the usual way."""
    if not isinstance(cache, EncoderDecoderCache) or type(cache.self_attention_cache) is not DynamicCache:
        return
    own = cache.self_attention_cache
    if not own.offloading:
        own.layers = [BeamLayer(layer) if type(layer) is DynamicLayer else layer for layer in own.layers]


class BeamLayer(DynamicLayer):
    """Keys and values stored token by token.

    So one pass over them puts beams in order and makes room for a token, where otherwise each takes a copy.
    """

    def __init__(self, layer: DynamicLayer):
        super().__init__()
        self.device, self.is_initialized = layer.device, True
        keys, values = cast(torch.Tensor, layer.keys), cast(torch.Tensor, layer.values)
        self.keys, self.values = (by_row(by_time(part).contiguous()) for part in (keys, values))
        self.rows: torch.Tensor | None = None

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Keep the rows `beam_idx`, from the next token on."""
        self.rows = beam_idx if self.rows is None else self.rows.index_select(0, beam_idx)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens, `(rows, heads, tokens, head_size)`, and return all."""
        keys, values = cast(torch.Tensor, self.keys), cast(torch.Tensor, self.values)
        self.keys, self.values = self._joined(keys, key_states), self._joined(values, value_states)
        self.rows = None
        return self.keys, self.values

    def _joined(self, states: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        old, new = by_time(states), by_time(new)
        joined = old.new_empty(len(old) + len(new), *new.shape[1:])
        if self.rows is None:
            joined[: len(old)] = old
        else:
            torch.index_select(old, 1, self.rows, out=joined[: len(old)])
        joined[len(old) :] = new
        return by_row(joined)


def by_time(states: torch.Tensor) -> torch.Tensor:
    """`(rows, heads, tokens, head_size)` -> `(tokens, rows, heads, head_size)`."""
    return states.permute(2, 0, 1, 3)


def by_row(states: torch.Tensor) -> torch.Tensor:
    """`(tokens, rows, heads, head_size)` -> `(rows, heads, tokens, head_size)`."""
    return states.permute(1, 2, 0, 3)
