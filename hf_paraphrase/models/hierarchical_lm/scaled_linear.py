"""Linear layers of the hierarchical language model, which know how large their parameters start."""

from __future__ import annotations

import math

import torch
from torch import nn

__all__ = ["ScaledLinear"]

# GELU(z) has a mean square of 1 where z is normal with this standard deviation.
GAIN = 1.47
# The bias' share of z's variance. With none, a vector that is a little too small gets smaller from layer to layer, a
# large one larger (Schoenholz et al. 2017, Deep information propagation, section 3).
BIAS = 0.1


class ScaledLinear(nn.Linear):
    """A linear layer before a GELU whose parameters start so that outputs have a mean square of 1.

    Args:
        in_features: Width of the inputs.
        out_features: Width of the outputs.
        bias: Whether there is one.
        mean_square: Of the inputs in training, as expected; dropout p makes 1 / (1 - p) of 1.
        scale: What all initial parameters are multiplied by, for smaller outputs.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, mean_square: float = 1.0, scale: float = 1.0
    ):
        super().__init__(in_features, out_features, bias=bias)
        self.mean_square, self.scale = mean_square, scale

    def draw(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Draw a weight, and a bias if any, from torch's generator."""
        weight = torch.randn_like(self.weight) * math.sqrt((1 - BIAS) / (self.in_features * self.mean_square))
        bias = None if self.bias is None else torch.randn_like(self.bias) * math.sqrt(BIAS)
        return self._rescale(weight), None if bias is None else self._rescale(bias)

    def _rescale(self, parameter: torch.Tensor) -> torch.Tensor:
        return parameter * (GAIN * self.scale)
