"""The parts of a Transformer (Vaswani et al. 2017), with layers that may attend to several memories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from transformers import EncoderDecoderCache, PreTrainedConfig
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

# Random numbers of 15 bits: as many as int16 has without a sign.
LEVELS = 2**15


class Dropout(nn.Dropout):
    """`nn.Dropout`, and several times as fast in training on a CPU.

    There PyTorch draws a random number of 32 bits for every element and compares it. Here one of 64 bits serves four
    elements, which are compared by integer arithmetic, so that p is a multiple of 1/32768. The scale is that of the
    rounded p, and the expectation exactly the input.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of `x` in training."""
        return x * self.noise(x) if self._is_slow(x) else super().forward(x)

    def add(self, x: Tensor, outputs: Tensor) -> Tensor:
        """Return `x + self(outputs)`."""
        if not self._is_slow(outputs):
            return x + super().forward(outputs)
        return torch.addcmul(x, outputs, self.noise(outputs))

    def noise(self, x: Tensor) -> Tensor:
        """Draw what each element of `x` is multiplied with: 0 or `1 / (1 - p)`."""
        dropped = round(self.p * LEVELS)
        drawn = torch.empty(x.numel() // 4 + 1, dtype=torch.long).random_().view(torch.int16)[: x.numel()]
        # Minus one where an element stays: the sign of an integer, which is spread over all its bits.
        stays = drawn.bitwise_and_(LEVELS - 1).sub_(dropped).bitwise_not_().bitwise_right_shift_(15)
        return stays.view(x.shape).to(x.dtype).mul_(-LEVELS / (LEVELS - dropped))

    def _is_slow(self, x: Tensor) -> bool:
        return self.training and x.device.type == "cpu" and 0 < self.p < 1 and not torch.compiler.is_compiling()


MaskOrNone = TypeVar("MaskOrNone", Tensor, Tensor | None)


class Memory(NamedTuple):
    """The memory that a layer attends to besides its own sequence.

    Args:
        keys: `(batch, length, key_size)`, compared with the queries.
        values: `(batch, length, value_size)`, averaged by the attention.
        mask: Of `additive_mask`.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention in several heads (Vaswani et al. 2017, section 3.2).

    Keys and values are projected by a separate call, `project`, so that those of a memory are computed once.

    Args:
        config: Names the attention implementation.
        size: Width of queries and outputs.
        num_heads: Heads, which divide `size`.
        key_size: Width of the keys; None for `size`.
        value_size: Width of the values; None for `size`.
    """

    def __init__(
        self,
        config: PreTrainedConfig,
        size: int,
        num_heads: int,
        key_size: int | None = None,
        value_size: int | None = None,
    ):
        super().__init__()
        self.config, self.num_heads = config, num_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(key_size or size, size)
        self.value = nn.Linear(value_size or size, size)
        self.output = nn.Linear(size, size)

    def project(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Map `(batch, length, width)` to the heads' keys and values, `(batch, num_heads, length, head_size)`."""
        return self._split(self.key(keys)), self._split(self.value(values))

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, output_attentions: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from every query.

        Args:
            queries: `(batch, length, size)`.
            keys: Projected.
            values: Projected.
            mask: Of `additive_mask` or `causal_mask`.
            output_attentions: Also return the weights, which the faster implementations do not have.

        Returns:
            `(batch, length, size)`, and the weights `(batch, num_heads, length, memory_length)` or None.
        """
        attend = eager_attention
        if not output_attentions:
            attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention)
        heads = self._split(self.query(queries))
        outputs, weights = attend(self, heads, keys, values, mask, scaling=heads.shape[-1] ** -0.5, is_causal=False)
        return self.output(outputs.flatten(2)), weights

    def _split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def eager_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, **kwargs
) -> tuple[Tensor, Tensor]:
    """Attention in plain operations, in the form of transformers' attention interface; it returns the weights too."""
    scores = query @ key.transpose(2, 3) * scaling
    weights = (scores if mask is None else scores + mask).softmax(dim=-1)
    return (weights @ value).transpose(1, 2), weights


class PostNormLayer(GradientCheckpointingLayer):
    """Self-attention, attention to each of some memories, and a feed-forward block.

    Each ends in dropout, the residual connection and layer normalisation: `LayerNorm(x + Dropout(Sublayer(x)))`
    (post-norm, Vaswani et al. 2017, section 3.1). Without memories it is an encoder layer, with one a decoder layer.

    Args:
        config: Gives `hidden_size`, `intermediate_size` and `dropout`.
        num_heads: Heads of every attention.
        memory_sizes: Widths of keys and values of each memory.
        index: Number of the layer in its stack, from 0.
    """

    def __init__(
        self, config: PreTrainedConfig, num_heads: int, memory_sizes: Sequence[tuple[int, int]] = (), index: int = 0
    ):
        super().__init__()
        size, self.index = config.hidden_size, index
        self.self_attention = MultiHeadAttention(config, size, num_heads)
        self.memory_attentions = nn.ModuleList(
            MultiHeadAttention(config, size, num_heads, *sizes) for sizes in memory_sizes
        )
        self.feed_forward = nn.Sequential(
            nn.Linear(size, config.intermediate_size), nn.ReLU(), nn.Linear(config.intermediate_size, size)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2 + len(memory_sizes)))
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        states: Tensor,
        mask: Tensor | None = None,
        memories: Sequence[Memory] = (),
        cache: EncoderDecoderCache | None = None,
        output_attentions: bool | None = None,
        num_outputs: int | None = None,
    ) -> Tensor:
        """Run the layer.

        Args:
            states: `(batch, length, hidden_size)`.
            mask: Of the self-attention.
            memories: As many as `memory_sizes`.
            cache: Of a decoder that goes step by step; updated in place. The cache of the cross-attention has an entry
                for each memory of each layer.
            output_attentions: Compute the weights, for `capture_outputs` to collect.
            num_outputs: Positions to compute, from the first; None for all. All positions are attended to.

        Returns:
            `(batch, num_outputs, hidden_size)`.
        """
        keys, values = self.self_attention.project(states, states)
        if cache is not None:
            keys, values = cache.self_attention_cache.update(keys, values, self.index)
        states = states[:, :num_outputs]
        outputs, _ = self.self_attention(states, keys, values, mask, output_attentions)
        states = self._add(0, states, outputs)
        for number, (attention, memory) in enumerate(zip(self.memory_attentions, memories, strict=True)):
            slot = self.index * len(memories) + number
            keys, values = project_once(cast(MultiHeadAttention, attention), memory, cache, slot)
            outputs, _ = attention(states, keys, values, memory.mask, output_attentions)
            states = self._add(number + 1, states, outputs)
        return self._add(-1, states, self.feed_forward(states))

    def _add(self, number: int, states: Tensor, outputs: Tensor) -> Tensor:
        return self.norms[number](self.dropout.add(states, outputs))


def project_once(
    attention: MultiHeadAttention, memory: Memory, cache: EncoderDecoderCache | None, slot: int
) -> tuple[Tensor, Tensor]:
    """Project a memory's keys and values at a sequence's first step, and take them from the cache at all others."""
    if cache is None:
        return attention.project(memory.keys, memory.values)
    if cache.is_updated.get(slot):
        layer: Any = cache.cross_attention_cache.layers[slot]
        return layer.keys, layer.values
    cache.is_updated[slot] = True
    return cache.cross_attention_cache.update(*attention.project(memory.keys, memory.values), slot)


def additive_mask(attention_mask: MaskOrNone, dtype: torch.dtype) -> MaskOrNone:
    """Turn a mask `(batch, length)` of ones and zeros into one to add to scores, `(batch, 1, 1, length)`."""
    if attention_mask is None:
        return attention_mask
    return to_additive(attention_mask.bool()[:, None, None, :], dtype)


def zero_padding(states: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Make states `(batch, length, size)` zero where the mask is: a memory without a word is the same in any width."""
    return states if attention_mask is None else states.masked_fill(attention_mask.unsqueeze(-1) == 0, 0.0)


def causal_mask(attention_mask: Tensor | None, length: int, past: int, states: Tensor) -> Tensor:
    """The mask of a decoder's self-attention: no position sees padding or those after it.

    Args:
        attention_mask: `(batch, past + length)`, 1 for real positions; None for no padding.
        length: New positions, the queries.
        past: Positions before them.
        states: Give dtype and device.

    Returns:
        `(batch or 1, 1, length, past + length)`, to be added to scores.
    """
    positions = torch.arange(past + length, device=states.device)
    allowed = (positions <= positions[past:, None])[None, None]
    if attention_mask is not None:
        allowed = allowed & attention_mask.bool()[:, None, None, :]
    return to_additive(allowed, states.dtype)


def to_additive(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn True where a query may see a key, of any shape, into a mask to add to scores."""
    # Not minus infinity: a row in which nothing is allowed would become NaN.
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)


def position_states(attention_mask: Tensor | None, states: Tensor, past: int = 0) -> Tensor:
    """Sines and cosines of the positions, counted without padding (Vaswani et al. 2017, section 3.5).

    Args:
        attention_mask: `(batch, past + length)`, 1 for real positions; None for no padding.
        states: `(batch, length, size)`, to which they are to be added.
        past: Positions before these.

    Returns:
        `(batch or 1, length, size)`.
    """
    length, size = states.shape[1:]
    if attention_mask is None:
        positions = torch.arange(past, past + length, device=states.device)[None]
    else:
        positions = (attention_mask.long().cumsum(dim=1) - 1).clamp(min=0)[:, past:]
    return sinusoids(positions, size, states.dtype)


def sinusoids(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Sines and cosines of positions `(…)`, by turns: `(…, size)`, computed in single precision at least."""
    exact = torch.promote_types(dtype, torch.float32)
    rates = torch.exp(torch.arange(0, size, 2, dtype=exact, device=positions.device) * (-math.log(10000.0) / size))
    angles = positions.unsqueeze(-1) * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(dtype)
