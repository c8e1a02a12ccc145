from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def at_least_single(tensor: Tensor) -> Tensor:
    """Raise half precision to single, in which losses and softmaxes are summed; double precision stays as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


@cache
def runs_lstm(dtype: torch.dtype) -> bool:
    """Whether this CPU runs an LSTM under autocast to `dtype`, by running a tiny one.

    oneDNN lacks the kernel on most machines: it needs AVX512 for bfloat16, AVX512-FP16 for float16. Where it lacks the
    kernel, all other products in that precision are emulated, too, and take longer than in single precision.
    """
    # Zeros, not `nn.LSTM`, whose new weights would take numbers from a seeded generator.
    x, h, weight, bias = (torch.zeros(size) for size in ((1, 1, 1), (1, 1, 1), (4, 1), (4,)))
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype):
            torch.lstm(x, (h, h), [weight, weight, bias, bias], True, 1, 0.0, False, False, True)
    except RuntimeError:
        return False
    return True


def fast_dtype(device: str | torch.device) -> torch.dtype:
    """The precision in which a device generates fastest, for `model.to(fast_dtype(model.device))`.

    bfloat16 on a GPU and on a CPU that multiplies it in hardware (AVX512-BF16, which all CPUs with AMX have, too);
    elsewhere single precision, since a CPU without it takes longer for bfloat16.
    """
    if torch.device(device).type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    has_hardware = torch.device(device).type == "cpu" and torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if has_hardware and runs_lstm(torch.bfloat16) else torch.float32
