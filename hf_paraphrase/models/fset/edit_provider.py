from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from ..layers.dropout import Dropout
from ..layers.transformer import Memory, PostNormLayer, additive_mask, position_states, zero_padding
from .configuration_fset import FsetConfig

__all__ = ["EditProvider", "Edits", "SoleMap", "Tokens"]


class Tokens(NamedTuple):
    """A batch of sequences: embeddings `(batch, length, hidden_size)` and their mask `(batch, length)` of 1 and 0."""

    states: torch.Tensor
    mask: torch.Tensor


class Edits(NamedTuple):
    """What turns p into q.

    Args:
        vector: z, `(batch, edit_vector_size)`; None if the configuration has none.
        micro: M, `(batch, p_length, micro_edit_size)`; one for each token of p.
        positions: R_p, `(batch, p_length, hidden_size)`: where in p each edit applies.
    """

    vector: torch.Tensor | None
    micro: torch.Tensor
    positions: torch.Tensor


class SoleMap(nn.Linear):
    """A linear map without a residual connection."""


class EditProvider(nn.Module):
    """The Edit Provider: reads a pair (p, q) and finds the edits between them (Kazemnejad et al. 2020, section 3.2.1).

    The Target Encoder turns q into R_q. The Edit Encoder reads [AGR] p, and each of its layers also attends to R_q;
    a dense layer with tanh makes each of its outputs a micro edit vector: z_{p→q} at [AGR], M at the tokens of p. The
    same weights go from q to p, which gives z_{q→p}, and R_p by the Target Encoder; `z = Linear([z_{p→q}; z_{q→p}])`
    without bias. Both directions are one batch of twice the size.

    Readings where the paper leaves a choice: [AGR] is a vector of its own, no word of the vocabulary; it has no micro
    edit in M, since R_p has no position for it.
    """

    def __init__(self, config: FsetConfig):
        super().__init__()
        size, heads = config.hidden_size, config.provider_heads
        layers = range(config.provider_layers)
        self.target_encoder = nn.ModuleList(PostNormLayer(config, heads) for _ in layers)
        self.edit_encoder = nn.ModuleList(PostNormLayer(config, heads, [(size, size)]) for _ in layers)
        self.micro_edit = SoleMap(size, config.micro_edit_size)
        self.dropout = Dropout(config.dropout)
        self.aggregate = self.combine = None
        if config.use_edit_vector:
            self.aggregate = nn.Parameter(torch.empty(size))
            self.combine = SoleMap(2 * config.micro_edit_size, config.edit_vector_size, bias=False)

    def forward(self, p: Tokens, q: Tokens) -> Edits:
        """Find the edits of a batch of pairs."""
        rows, length = p.mask.shape
        both, reverse = join(p, q), join(q, p)
        encoded = self._encode_targets(reverse)
        positions = encoded[rows:, :length]
        if self.combine is None or self.aggregate is None:
            inputs = self._start_edits(p, Tokens(encoded[:rows], reverse.mask[:rows]))
            return Edits(None, zero_padding(self._finish_edits(*inputs), p.mask), positions)
        inputs = self._start_edits(self._prepend_aggregate(self.aggregate, both), Tokens(encoded, reverse.mask))
        there = self._finish_edits(*(part[:rows] for part in inputs))
        # From q to p nothing is asked for but z, so that the last layer need not compute the rest.
        back = self._finish_edits(*(part[rows:] for part in inputs), num_outputs=1)
        vector = self.combine(torch.cat((there[:, 0], back[:, 0]), dim=-1))
        return Edits(vector, zero_padding(there[:, 1 : length + 1], p.mask), positions)

    @staticmethod
    def _prepend_aggregate(aggregate: torch.Tensor, source: Tokens) -> Tokens:
        first = aggregate.expand(source.mask.shape[0], 1, -1).to(source.states.dtype)
        return Tokens(torch.cat((first, source.states), dim=1), nn.functional.pad(source.mask, (1, 0), value=1))

    def _encode_targets(self, target: Tokens) -> torch.Tensor:
        states, mask = self._start(target)
        for layer in self.target_encoder:
            states = layer(states, mask)
        return zero_padding(states, target.mask)

    def _start_edits(self, source: Tokens, target: Tokens) -> tuple[torch.Tensor, ...]:
        """Run all layers of the Edit Encoder except the last, and return its inputs."""
        states, mask = self._start(source)
        memory = target.states, additive_mask(target.mask, target.states.dtype)
        for layer in self.edit_encoder[:-1]:
            states = layer(states, mask, [Memory(memory[0], *memory)])
        return states, mask, *memory

    def _finish_edits(
        self,
        states: torch.Tensor,
        mask: torch.Tensor,
        target_states: torch.Tensor,
        target_mask: torch.Tensor,
        *,
        num_outputs: int | None = None,
    ) -> torch.Tensor:
        memory = Memory(target_states, target_states, target_mask)
        return torch.tanh(self.micro_edit(self.edit_encoder[-1](states, mask, [memory], num_outputs=num_outputs)))

    def _start(self, tokens: Tokens) -> tuple[torch.Tensor, torch.Tensor]:
        states = self.dropout(tokens.states + position_states(tokens.mask, tokens.states))
        return states, additive_mask(tokens.mask, states.dtype)


def join(first: Tokens, second: Tokens) -> Tokens:
    """Put two batches into one, padded on the right to the longer of the two."""
    length = torch.sym_max(first.mask.shape[1], second.mask.shape[1])
    states, masks = (
        [nn.functional.pad(part, (0, 0) * (part.ndim - 2) + (0, length - part.shape[1])) for part in parts]
        for parts in zip(first, second, strict=True)
    )
    return Tokens(torch.cat(states), torch.cat(masks))
