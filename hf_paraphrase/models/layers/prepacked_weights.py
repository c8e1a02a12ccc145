"""Weights in the layout that oneDNN multiplies by, made once for all steps of a decoder or all batches of a call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from torch import nn

from .packing import LstmState

STEPS_WORTH_PACKING = 8
# A layer's weights are packed once it has multiplied this many rows by them; for fewer it takes longer than it saves.
MANY_ROWS = 64
# Weights of a model of which a call may hold a second, packed copy.
MOST_WEIGHTS = 2**27


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


class PackedForward:
    """Stands in for the `forward` of a linear layer, and multiplies by packed weights where that is possible and pays.

    Args:
        layer: The layer, whose weights must not change.
    """

    def __init__(self, layer: nn.Linear):
        self.layer, self.rows = layer, 0
        self.packed: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Do what `layer(x)` does."""
        if not can_prepack(x.reshape(-1, x.shape[-1]), self.layer.weight):
            return type(self.layer).forward(self.layer, x)
        self.rows += x.numel() // x.shape[-1]
        if self.packed is None and self.rows < MANY_ROWS:
            return type(self.layer).forward(self.layer, x)
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.layer.weight)
        return multiply_packed(x, self.packed, self.layer.bias)


# How many calls are in progress in which a model's layers multiply by packed weights.
CALLS: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
LOCK = Lock()


@contextmanager
def prepacked(model: nn.Module) -> Iterator[None]:
    """Let the linear layers of a model on the CPU multiply by packed weights, which are dropped at the end.

    Meanwhile the weights must not change. Contexts of one model, nested or in several threads, share what is packed.

    Args:
        model: Any model. One with very many weights is left alone, since they are held twice.
    """
    with LOCK:
        CALLS[model] = CALLS.get(model, 0) + 1
        if CALLS[model] == 1:
            for layer in find_packable(model):
                vars(layer)["forward"] = PackedForward(layer)
    try:
        yield
    finally:
        with LOCK:
            CALLS[model] -= 1
            if not CALLS[model]:
                for module in model.modules():
                    if isinstance(vars(module).get("forward"), PackedForward):
                        del vars(module)["forward"]


def find_packable(model: nn.Module) -> list[nn.Linear]:
    """The plain linear layers on the CPU; none of a model with too many weights."""
    layers = [layer for layer in model.modules() if type(layer) is nn.Linear]
    if sum(layer.weight.numel() for layer in layers) > MOST_WEIGHTS:
        return []
    # Weights that are loaded when they are needed have a `forward` of their own.
    return [layer for layer in layers if layer.weight.device.type == "cpu" and "forward" not in vars(layer)]


def can_prepack(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a weight may be packed for products with `x`."""
    return (
        # Checked first: traced values must not be inspected further.
        not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and _is_supported(x.dtype)
    )


@cache
def _is_supported(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available() or not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
