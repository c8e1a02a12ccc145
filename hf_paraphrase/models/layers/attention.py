from __future__ import annotations

import torch
from torch import nn

from .layer_weights import parameter_of
from .precision import at_least_single


class AdditiveAttention(nn.Module):
    """Bahdanau attention: `softmax(v·tanh(W_q s + W_k h))` over the source states (Bahdanau et al. 2015, section 3.1).

    The projected keys depend on the source alone; compute them once with `project_keys` and reuse them at every step.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int):
        super().__init__()
        self.query = nn.Linear(query_size, attention_size)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, memory: torch.Tensor) -> torch.Tensor:
        """Map source states `(batch, source_length, memory_size)` to keys `(batch, source_length, attention_size)`."""
        return self.key(memory)

    def forward(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        memory: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend from every query to every real source state at once.

        Args:
            queries: `(batch, target_length, query_size)`.
            keys: `project_keys(memory)`.
            memory: `(batch, source_length, memory_size)`.
            attention_mask: `(batch, source_length)`, 1 for real source positions, 0 for padding.

        Returns:
            The contexts `(batch, target_length, memory_size)` and the weights `(batch, target_length, source_length)`.
        """
        return self.attend(self.query(queries), keys, memory, attention_mask)

    def attend(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        memory: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Do what `forward` does, with queries that `self.query` has projected, of the keys' width."""
        dtype = queries.dtype
        if queries.device.type == "cpu" and not torch.is_grad_enabled():
            # On a CPU half precision speeds up matrix products alone, and slows down the rest.
            queries, keys, memory = map(at_least_single, (queries, keys, memory))
        energies, vector = queries.unsqueeze(2) + keys.unsqueeze(1), parameter_of(self.score).to(queries.dtype)
        if queries.device.type == "cpu" and not torch.is_grad_enabled():
            # tanh(x) = 2·σ(2x) - 1, of which σ takes a sixth of the time, and softmax does not see the last term.
            energies, vector = energies.mul_(2).sigmoid_(), 2 * vector
        else:
            energies = energies.tanh_()
        scores = nn.functional.linear(energies, vector).squeeze(-1)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return (weights @ memory).to(dtype), weights.to(dtype)
