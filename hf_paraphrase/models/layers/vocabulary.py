from __future__ import annotations

import torch
from torch import nn

from .products import linear

# Slices of the matrix that stay in a core's cache while all rows pass, and the size from which that pays.
SLICE, LARGE = 2**19, 2**23


def score_words(layer: nn.Linear, hidden: torch.Tensor) -> torch.Tensor:
    """Return `layer(hidden)`, the scores of all words of the vocabulary; in decoding on the CPU, in slices of words.

    With the few rows of a decoding step, a product with a matrix that no cache holds waits for memory.
    """
    if _is_learning(layer):
        return linear(hidden.flatten(0, -2), layer.weight, layer.bias).unflatten(0, hidden.shape[:-1])
    if not _is_worth_slicing(layer, hidden):
        return layer(hidden)
    rows = hidden.reshape(-1, layer.in_features)
    scores = rows.new_empty(len(rows), layer.out_features)
    words = SLICE // layer.in_features
    for start in range(0, layer.out_features, words):
        part = slice(start, start + words)
        torch.mm(rows, layer.weight[part].t(), out=scores[:, part])
        if layer.bias is not None:
            scores[:, part] += layer.bias[part]
    return scores.view(*hidden.shape[:-1], layer.out_features)


def _is_learning(layer: nn.Module) -> bool:
    """Whether gradients are recorded of a plain layer, whose weights are at hand without calling it."""
    is_plain = type(layer) is nn.Linear and type(layer.weight) is nn.Parameter and "forward" not in vars(layer)
    return is_plain and not layer._forward_pre_hooks and not layer._forward_hooks and torch.is_grad_enabled()


def _is_worth_slicing(layer: nn.Module, hidden: torch.Tensor) -> bool:
    return (
        # Checked first: traced code must not inspect the number of rows.
        not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
        # Layers of quantised models have no matrix, or none at hand.
        and type(layer) is nn.Linear
        and layer.weight.numel() >= LARGE
        and hidden.device.type == layer.weight.device.type == "cpu"
        and hidden.dtype == layer.weight.dtype
        and hidden.numel() > layer.in_features
    )
