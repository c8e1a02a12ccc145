from __future__ import annotations

import math

__all__ = ["scale_initializer_range"]


def scale_initializer_range(hidden_size: int) -> float:
    """How far from 0 the weights of an LSTM may start: 0.08 at 1,000 units, and more for narrower layers.

    The states of a layer have the scale of these weights times the root of its width. With 0.08, layers of 256 units
    pass on so little that a stack of them hardly learns at first.

    Source: the 0.08 is that of Sutskever et al. 2014 and of Li et al. 2015, section 4.2, both for 1,000 units.
    """
    return 0.08 * math.sqrt(1000 / max(hidden_size, 1))
