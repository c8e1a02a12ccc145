"""Weights of layers that are multiplied outside of the layers' own `forward`, wherever they are kept."""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel


def parameter_of(layer: nn.Module, name: str = "weight") -> torch.Tensor:
    """Return a parameter of a layer as a tensor of floats.

    Args:
        layer: Also a layer that `quantize_dynamic` made, whose weight is a function, or one that accelerate offloads,
            whose parameters are meta tensors except during its `forward`.
        name: Of the parameter.
    """
    value = getattr(layer, name)
    if not isinstance(value, torch.Tensor) and callable(value):
        return value().dequantize()
    hook = _offloading_hook(layer)
    return value if hook is None or not value.is_meta else hook.weights_map[name].to(hook.execution_device)


def input_device(model: PreTrainedModel) -> torch.device:
    """Return the device from which a model reads: its own, or the one on which accelerate runs it."""
    if model.device.type != "meta":
        return model.device
    found = (getattr(hook, "execution_device", None) for hook in _hooks_of(model))
    device = next((one for one in found if one is not None), "cpu")
    return torch.device(device)


def _offloading_hook(layer: nn.Module):
    return next((hook for hook in _hooks_of(layer) if getattr(hook, "weights_map", None) is not None), None)


def _hooks_of(layer: nn.Module) -> list:
    hook = getattr(layer, "_hf_hook", None)
    # accelerate puts several hooks of a layer into one.
    return getattr(hook, "hooks", [hook])
