from __future__ import annotations

import math

from torch import nn
from transformers import initialization as init


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
