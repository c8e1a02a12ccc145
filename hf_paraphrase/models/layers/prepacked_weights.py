"""Weights in the layout that oneDNN multiplies by, made once for all steps of a decoder."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import nn

from .packing import LstmState

__all__ = ["PrepackedWeights"]

STEPS_WORTH_PACKING = 8


class PrepackedWeights:
    """Keeps weights as oneDNN wants them, each packed when it is first needed.

    With the few rows of a decoder's step, a product on the CPU takes up to twice as long where the layout of the
    weights has to be changed first, which PyTorch's own layers do at every call. The cache of a decoder holds the
    packed ones: they live as long as one `generate()`, so that no change of the weights is missed.

    Packing is for single precision and bfloat16 on CPUs of the x86 family, and while no gradient is recorded. int8 is
    left out: with 160 rows and 10,000 words its product takes 0.9 to 1.2 times as long as that of bfloat16, packing
    its weights ten times as long, and one scale for all rows would make each depend on the others.
    """

    def __init__(self):
        self._packed: dict[Hashable, list[torch.Tensor]] = {}

    def __deepcopy__(self, memo: dict) -> PrepackedWeights:
        return PrepackedWeights()

    def linear(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """Do what `layer(x)` does.

        Args:
            layer: Any module; a linear layer is packed where that is possible.
            x: `(batch, length, in_features)`. More than one position is multiplied as ever.
        """
        if not isinstance(layer, nn.Linear) or type(layer.weight) is not nn.Parameter:
            return layer(x)
        if x.shape[1] > 1 or not can_prepack(x, layer.weight):
            return layer(x)
        if layer not in self._packed:
            self._packed[layer] = [torch.ops.mkldnn._reorder_linear_weight(layer.weight)]
        (packed,) = self._packed[layer]
        return multiply_packed(x, packed, layer.bias)

    def run_cell(self, lstm: nn.LSTM, layers: range, x: torch.Tensor, sizes: list[int], state: LstmState):
        """Run a single step of a layer that can be packed, as the kernels of `lstm_kernels` do.

        Both products are one. tanh(z) is computed as 2σ(2z) - 1, since σ takes a fraction of the time on a CPU.
        """
        (layer,), (h, c) = layers, state
        if (lstm, layer) not in self._packed:
            weight_ih, weight_hh, *biases = lstm.all_weights[layer]
            weight, bias = torch.cat((weight_ih, weight_hh), dim=1), torch.add(*biases)
            for part in (weight, bias):
                part.chunk(4)[2].mul_(2)
            self._packed[lstm, layer] = [torch.ops.mkldnn._reorder_linear_weight(weight), bias]
        gates = multiply_packed(torch.cat((x, h[0]), dim=1), *self._packed[lstm, layer])
        i, f, g, o = gates.float().sigmoid_().chunk(4, dim=1)
        new_c = torch.mul(f, c[0]).sub_(i).addcmul_(i, g, value=2)
        new_h = torch.mul(new_c, 2).sigmoid_().sub_(0.5).mul_(o).mul_(2)
        new_h, new_c = new_h.to(x.dtype), new_c.to(x.dtype)
        return new_h, (new_h.unsqueeze(0), new_c.unsqueeze(0))


def multiply_packed(x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], None)


def multiplier(weight: torch.Tensor, steps: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return `x @ weight.t()` as a function of `x`, for as many calls, with the weight packed if that is faster."""
    is_supported = weight.device.type == "cpu" and weight.dtype == torch.float32 and _is_supported(weight.dtype)
    if steps < STEPS_WORTH_PACKING or not is_supported:
        return lambda x: x @ weight.t()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    return lambda x: multiply_packed(x, packed, None)


def can_prepack(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a weight may be packed for products with `x`."""
    return (
        # Checked first: traced values must not be inspected further.
        not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and _is_supported(x.dtype)
    )


def _is_supported(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available() or not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
