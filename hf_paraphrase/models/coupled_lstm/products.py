"""Matrix products of the few hundred rows of an anti-diagonal, by the library that is fastest here."""

from __future__ import annotations

from functools import cache

import torch

__all__ = ["add_product", "multiply"]


def multiply(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return `x @ weight.t()`, outside of automatic differentiation."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.default(x, weight, None, "none", [], None)
    return x @ weight.t()


def add_product(total: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return `total + x @ weight.t()`, which may stand in the memory of `total`; the same holds."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.binary(x, total, weight, None, "add")
    return total.addmm_(x, weight.t())


@cache
def has_wide_vectors(device: str, dtype: torch.dtype) -> bool:
    """Whether oneDNN multiplies with AVX-512, which MKL, behind `@`, leaves unused on AMD's processors."""
    is_wide = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return device == "cpu" and dtype == torch.float32 and is_wide
