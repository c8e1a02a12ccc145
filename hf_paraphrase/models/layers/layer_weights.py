"""Weights of layers: how they start, and wherever they are kept, for products outside of a layer's `forward`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init


def parameter_of(layer: nn.Module, name: str = "weight") -> Tensor:
    """Return a parameter of a layer as a tensor of floats.

    Args:
        layer: Also a layer that `quantize_dynamic` made, whose weight is a function, or one that accelerate offloads,
            whose parameters are meta tensors except during its `forward`.
        name: Of the parameter.
    """
    value = getattr(layer, name)
    if not isinstance(value, Tensor) and callable(value):
        return value().dequantize()
    hook = next((hook for hook in _hooks_of(layer) if getattr(hook, "weights_map", None) is not None), None)
    return value if hook is None or not value.is_meta else hook.weights_map[name].to(hook.execution_device)


def input_device(model: PreTrainedModel) -> torch.device:
    """Return the device from which a model reads: its own, or the one on which accelerate runs it."""
    if model.device.type != "meta":
        return model.device
    found = (getattr(hook, "execution_device", None) for hook in _hooks_of(model))
    device = next((one for one in found if one is not None), "cpu")
    return torch.device(device)


def _hooks_of(layer: nn.Module) -> list:
    hook = getattr(layer, "_hf_hook", None)
    # accelerate puts several hooks of a layer into one.
    return getattr(hook, "hooks", [hook])


def scale_initializer_range(hidden_size: int) -> float:
    """How far from 0 the weights of an LSTM may start: 0.08 at 1,000 units, and more for narrower layers.

    The states of a layer have the scale of these weights times the root of its width. With 0.08, layers of 256 units
    pass on so little that a stack of them hardly learns at first.

    Source: the 0.08 is that of Sutskever et al. 2014 and of Li et al. 2015, section 4.2, both for 1,000 units.
    """
    return 0.08 * math.sqrt(1000 / max(hidden_size, 1))


def draw_uniform(module: nn.Module, bound: float) -> None:
    """Draw the weights of a layer from `[-bound, bound]`; the embedding of padding, unless it was loaded, is 0."""
    if isinstance(module, nn.LSTM | nn.Linear | nn.Embedding):
        for parameter in module.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)
    is_loaded = isinstance(module, nn.Embedding) and getattr(module.weight, "_is_hf_initialized", False)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None and not is_loaded:
        init.zeros_(module.weight[module.padding_idx])
