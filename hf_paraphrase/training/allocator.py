from __future__ import annotations

import ctypes
import platform

__all__ = ["keep_freed_memory"]

# Numbers of glibc's malloc.h, and the largest values it takes.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_TRIM, LARGEST_MMAP = 2**31 - 1, 32 << 20


def keep_freed_memory() -> None:
    """Let this process keep the memory that a training step frees, for the next one. Only glibc gives it back.

    The tensors that the backward pass needs are freed together. glibc would return their pages to the system, which
    must clear new ones at the next step.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP)
    libc.mallopt(M_TRIM_THRESHOLD, LARGEST_TRIM)
