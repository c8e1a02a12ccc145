"""Weights in the layout that oneDNN multiplies by, made once for all steps of a decoder."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import nn

from .packing import LstmState

__all__ = ["PrepackedWeights"]

LSTM_MODE = 2  # in PyTorch's enumeration of recurrent layers
FEW_ROWS = 4  # with less, in single precision, all the time goes into reading the weights, in any layout


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
        is_plain = isinstance(layer, nn.Linear) and type(layer.weight) is nn.Parameter
        if not is_plain or x.shape[1] > 1 or not can_prepack(x, layer.weight):
            return layer(x)
        if layer not in self._packed:
            self._packed[layer] = [torch.ops.mkldnn._reorder_linear_weight(layer.weight)]
        return torch.ops.mkldnn._linear_pointwise(x, *self._packed[layer], layer.bias, "none", [], None)

    def run_cell(self, lstm: nn.LSTM, layers: range, x: torch.Tensor, sizes: list[int], state: LstmState):
        """Run a single step of a layer in a single kernel, where the layer can be packed; as in `lstm_kernels`."""
        (layer,), (h, c) = layers, state
        weight_ih, weight_hh, *biases = lstm.all_weights[layer]
        key, size = (lstm, layer), lstm.hidden_size
        if key not in self._packed:
            self._packed[key] = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight(
                weight_ih, weight_hh, size, False, True, False, [1, *x.shape]
            )
        # Not reversed, no sizes of packed sequences; one layer, with biases, one direction, time first, no training.
        rest = False, list[int](), LSTM_MODE, size, 1, True, False, False, False
        # The kernel reads memory without a look at strides.
        x, h, c = (part.contiguous() for part in (x.unsqueeze(0), h, c))
        (packed_ih, packed_hh), (bias_ih, bias_hh) = self._packed[key], biases
        _, h, c, _ = torch.mkldnn_rnn_layer(x, packed_ih, packed_hh, bias_ih, bias_hh, h, c, *rest)
        return h[0], (h, c)


def can_prepack(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a weight may be packed for products with `x`."""
    return (
        # Checked first: traced values must not be inspected further.
        not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and (len(x) >= FEW_ROWS or x.dtype == torch.bfloat16)
        and _is_supported(x.dtype)
    )


def _is_supported(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available() or not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
