"""Matrix products by the library that is fastest here; all but `linear` are outside of automatic differentiation."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn
from torch.autograd.function import once_differentiable


def multiply(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return `x @ weight.t()`."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.default(x, weight, None, "none", [], None)
    return x @ weight.t()


def add_product(total: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return `total + x @ weight.t()`, which may stand in the memory of `total`."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.binary(x, total, weight, None, "add")
    return total.addmm_(x, weight.t())


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Do what `nn.functional.linear` does, differentiably, but only once.

    Args:
        x: `(rows, in_features)`.
        weight: `(out_features, in_features)`.
        bias: `(out_features,)`, if any.
    """
    is_plain = not (torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type))
    if is_plain and x.dtype == weight.dtype and has_wide_vectors(x.device.type, x.dtype):
        return WideLinear.apply(x, weight, bias)
    return nn.functional.linear(x, weight, bias)


class WideLinear(torch.autograd.Function):
    """A linear layer whose three products are oneDNN's."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], None)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            multiply(grad, weight.t()) if of_x else None,
            # This way round, oneDNN takes up to a third less.
            multiply(x.t(), grad.t()).t() if of_weight else None,
            grad.sum(0) if of_bias else None,
        )


@cache
def has_wide_vectors(device: str, dtype: torch.dtype) -> bool:
    """Whether oneDNN multiplies with AVX-512, which MKL, behind `@`, leaves unused on AMD's processors."""
    is_wide = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return device == "cpu" and dtype == torch.float32 and is_wide
