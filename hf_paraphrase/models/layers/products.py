"""Matrix products by the library that is fastest here, and weights in the layout by which oneDNN multiplies.

Weights are laid out once for all steps of a decoding or batches of a call. All products but `linear` are outside of
automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# Looked up once: overload resolution takes longer than a small step's operation.
sigmoid_backward, sigmoid_backward_out = (
    torch.ops.aten.sigmoid_backward.default,
    torch.ops.aten.sigmoid_backward.grad_input,
)


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """Return `x @ weight.t()`."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.default(x, weight, None, "none", [], None)
    return x @ weight.t()


def add_product(total: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Return `total + x @ weight.t()`, which may stand in the memory of `total`."""
    if has_wide_vectors(x.device.type, x.dtype):
        return torch.ops.mkldnn._linear_pointwise.binary(x, total, weight, None, "add")
    return total.addmm_(x, weight.t())


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
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
        self._packed: dict[Hashable, list[Tensor]] = {}

    def __deepcopy__(self, memo: dict) -> PrepackedWeights:
        return PrepackedWeights()

    def linear(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Do what `layer(x)` does, for `x` of `(batch, length, in_features)`.

        One position of a linear layer is multiplied by packed weights where that is possible, all else as ever.
        """
        if not isinstance(layer, nn.Linear) or type(layer.weight) is not nn.Parameter:
            return layer(x)
        if x.shape[1] > 1 or not can_prepack(x, layer.weight):
            return layer(x)
        if layer not in self._packed:
            self._packed[layer] = [torch.ops.mkldnn._reorder_linear_weight(layer.weight)]
        (packed,) = self._packed[layer]
        return multiply_packed(x, packed, layer.bias)

    def run_cell(self, lstm: nn.LSTM, layers: range, x: Tensor, sizes: list[int], state: tuple):
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


def multiply_packed(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], None)


def multiplier(weight: Tensor, steps: int) -> Callable[[Tensor], Tensor]:
    """Return `x @ weight.t()` as a function of `x`, for as many calls, with the weight packed if that is faster."""
    is_supported = weight.device.type == "cpu" and weight.dtype == torch.float32 and _is_supported(weight.dtype)
    if steps < STEPS_WORTH_PACKING or not is_supported:
        return lambda x: x @ weight.t()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    return lambda x: multiply_packed(x, packed, None)


class PackedForward:
    """Stands in for the `forward` of a linear layer, and multiplies by packed weights where that is possible and pays.

    The layer's weights must not change.
    """

    def __init__(self, layer: nn.Linear):
        self.layer, self.rows = layer, 0
        self.packed: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Do what `layer(x)` does."""
        if can_prepack(x, self.layer.weight):
            self.rows += x.numel() // x.shape[-1]
            if self.packed is None and self.rows >= MANY_ROWS:
                self.packed = torch.ops.mkldnn._reorder_linear_weight(self.layer.weight)
            if self.packed is not None:
                return multiply_packed(x, self.packed, self.layer.bias)
        return type(self.layer).forward(self.layer, x)


# How many calls are in progress in which a model's layers multiply by packed weights.
CALLS: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
LOCK = Lock()


@contextmanager
def prepacked(model: nn.Module) -> Iterator[None]:
    """Let the linear layers of a model on the CPU multiply by packed weights, which are dropped at the end.

    Meanwhile the weights must not change. Contexts of one model, nested or in several threads, share what is packed. A
    model with very many weights is left alone, since they are held twice.
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


def can_prepack(x: Tensor, weight: Tensor) -> bool:
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
