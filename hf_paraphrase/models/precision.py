from __future__ import annotations

import torch

__all__ = ["at_least_single", "fast_dtype"]


def at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    """Raise half precision to single, in which losses and softmaxes are summed; double precision stays as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def fast_dtype(device: str | torch.device) -> torch.dtype:
    """The precision in which a device generates fastest, for `model.to(fast_dtype(model.device))`.

    bfloat16 on a GPU and on a CPU that multiplies it in hardware (AVX512-BF16, which all CPUs with AMX have, too);
    elsewhere single precision, since a CPU without it takes longer for bfloat16.
    """
    if torch.device(device).type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    is_fast = torch.device(device).type == "cpu" and torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if is_fast else torch.float32
