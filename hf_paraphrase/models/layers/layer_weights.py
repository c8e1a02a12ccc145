"""Weights of layers that are multiplied outside of the layers' own `forward`, wherever they are kept."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from transformers import PreTrainedModel

__all__ = ["at_hand", "input_device", "one_layer", "parameter_of"]


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


def at_hand(lstm: nn.LSTM) -> nn.LSTM:
    """Return the layers of an LSTM with their weights: themselves, or a copy if accelerate offloads them.

    Their own `forward` needs the copy, too: `nn.LSTM` does not notice how accelerate replaces parameters.
    """
    if not isinstance(lstm, nn.LSTM) or _offloading_hook(lstm) is None:
        return lstm
    copied = type(lstm)(
        lstm.input_size,
        lstm.hidden_size,
        num_layers=lstm.num_layers,
        dropout=lstm.dropout,
        bidirectional=lstm.bidirectional,
        batch_first=lstm.batch_first,
        device="meta",
    ).train(lstm.training)
    copied.load_state_dict({name: parameter_of(lstm, name) for name, _ in lstm.named_parameters()}, assign=True)
    return copied


def one_layer(lstm: nn.LSTM, layer: int) -> Callable:
    """Return a layer of an LSTM as a separate LSTM with the same weights.

    Args:
        lstm: Also one that `quantize_dynamic` made.
        layer: Its place, from 0.
    """
    directions = 2 if lstm.bidirectional else 1
    size = lstm.hidden_size * directions if layer else lstm.input_size
    if not isinstance(lstm, nn.LSTM):
        single = copy.copy(lstm)
        packed = lstm._all_weight_values[layer * directions : (layer + 1) * directions]
        # Modules are kept in a dict, which the copy shares.
        vars(single).update(num_layers=1, input_size=size, _modules={"_all_weight_values": packed})
        return single
    single = nn.LSTM(size, lstm.hidden_size, bidirectional=lstm.bidirectional, batch_first=True, device="meta")
    weights: dict[str, torch.Tensor] = {
        name.replace(f"_l{layer}", "_l0"): weight
        for name, weight in lstm.named_parameters()
        if name.removesuffix("_reverse").endswith(f"_l{layer}")
    }
    return lambda *inputs: torch.func.functional_call(single, weights, inputs)


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
