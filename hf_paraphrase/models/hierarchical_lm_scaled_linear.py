"""Linear layers of the hierarchical language model, which know how large their weights start."""

from __future__ import annotations

import math

import torch
from torch import nn

__all__ = ["ScaledLinear"]


class ScaledLinear(nn.Linear):
    """A linear layer before a GELU or a GRU whose weights start so that outputs vary as much as inputs.

    GELU(z) has a variance of 1 over the units where z is normal with a standard deviation of 5/3, and a mean of more
    than ½ there. The rows of the weight sum to zero: so this mean does not reach the layer above, where it would make
    all inputs alike, add up over the layers' sums and let the scale grow or shrink with depth.

    Args:
        in_features: Width of the inputs.
        out_features: Width of the outputs.
        bias: Whether there is one; it starts at zero.
        scale: What initial weights are multiplied by beside `5/3 / √in_features`: less than 1 where inputs are sums.
    """

    GAIN = 5 / 3

    def __init__(self, in_features: int, out_features: int, bias: bool = True, scale: float = 1.0):
        super().__init__(in_features, out_features, bias=bias)
        self.scale = scale

    def initial_weight(self) -> torch.Tensor:
        """Draw a weight `(out_features, in_features)` from torch's generator."""
        draw = torch.randn_like(self.weight)
        return (draw - draw.mean(dim=1, keepdim=True)) * (self.scale * self.GAIN / math.sqrt(self.in_features))
