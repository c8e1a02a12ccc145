"""Linear layers whose products run in 8-bit integers, on any CPU of the x86 family."""

from __future__ import annotations

import warnings

import torch
from torch import nn

from ..errors import InputError
from ..models.layers.vocabulary import VocabularyProjection

__all__ = ["Int8Linear", "quantize_linears"]

# Inputs take 7 bits, of which zero is the 64th step: so AVX2's sums of two products never overflow 16 bits.
INPUT_LEVELS, INPUT_ZERO = 63, 64
WEIGHT_LEVELS = 127
# Other subclasses of `nn.Linear` have methods of their own, or whoever holds them multiplies by their weights.
QUANTIZED = (nn.Linear, VocabularyProjection)
FEWEST_OUTPUTS = 16  # narrower layers take longer to quantise their inputs than to multiply


class Int8Linear(nn.Module):
    """Does what a linear layer does, in int8 while no gradient is recorded.

    Weights have one scale per output channel, inputs one per row, so that no row depends on the others of its batch.
    The layer keeps the parameters of the one it replaces, by which it trains, is saved and shares weights as before.

    Args:
        linear: The layer it replaces, in single precision on the CPU.
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach()
        scales = (weight.abs().amax(dim=1) / WEIGHT_LEVELS).clamp_min(torch.finfo(weight.dtype).tiny).double()
        zeros = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            # Of PyTorch's quantised tensors, which a later release may remove; its packed products take no others.
            warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
            quantized = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(quantized, None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `(*, in_features)` to `(*, out_features)`."""
        if torch.is_grad_enabled() or x.numel() == 0:
            return nn.functional.linear(x, self.weight, self.bias)
        largest = x.abs().amax(dim=-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / largest, 1 / INPUT_LEVELS, INPUT_ZERO, self._packed
        ).mul_(largest)
        return product if self.bias is None else product.add_(self.bias)


def quantize_linears(model: nn.Module) -> None:
    """Replace a model's linear layers, in place; layers of other kinds, such as LSTMs, stay in single precision.

    Raises:
        InputError: PyTorch has no int8 products here, or the model is not in single precision on the CPU, or has no
            linear layers, as GPT-2's, whose products are of a class of its own.
    """
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise InputError('`dtype="int8"` needs PyTorch with FBGEMM, on a CPU of the x86 family; take "fast" here')
    if any(p.device.type != "cpu" or p.dtype != torch.float32 for p in model.parameters()):
        raise InputError('`dtype="int8"` runs on the CPU alone: pass `device="cpu"`, or `dtype="fast"` for a GPU')
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) in QUANTIZED and child.out_features >= FEWEST_OUTPUTS
    ]
    if not found:
        raise InputError('`dtype="int8"`: the model has no linear layers to quantise; take "float32" or "fast"')
    for parent, name, linear in found:
        setattr(parent, name, Int8Linear(linear).train(linear.training))
