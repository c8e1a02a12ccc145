from __future__ import annotations

import torch

__all__ = ["at_least_single"]


def at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    """Raise half precision to single, in which losses and softmaxes are summed; double precision stays as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
