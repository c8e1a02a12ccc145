import subprocess
import sys

import pytest

PROGRAM = """
import platform, sys, torch
from pathlib import Path
from hf_paraphrase.training.loop import keep_freed_memory
if platform.libc_ver()[0] != "glibc":
    sys.exit(77)
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
if "keep" in sys.argv:
    keep_freed_memory()
before = resident()
tensors = [torch.ones(1 << 20) for _ in range(64)]  # 4 MiB each
del tensors
print(resident() - before)
"""


def kept(*arguments: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("the C library is not glibc")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_freed_memory_stays_with_the_process_when_asked():
    assert kept() < 64 << 20
    assert kept("keep") > 192 << 20
