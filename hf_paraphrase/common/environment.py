from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("hf-paraphrase", "torch", "transformers", "datasets", "tokenizers", "accelerate")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """What a result depends on besides its recipe: the device of the model, threads, versions, commit and date."""
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := _version(package))},
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def report_environment() -> dict[str, str]:
    """Machine and software, one line each, for bug reports."""
    gpus = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    # Our own distribution is missing if a checkout was never installed; then its requirements are unknown too.
    needs = requires(PACKAGES[0]) or [] if _version(PACKAGES[0]) else []
    needed = [re.split(r"[^\w-]", need)[0] for need in needs]
    packages = {name: _version(name) or "not installed" for name in dict.fromkeys([*PACKAGES, *sorted(needed)])}
    return {
        "platform": platform.platform(),
        "Python": platform.python_version(),
        **packages,
        "commit": _commit() or "unknown",
        "CPU cores": str(os.cpu_count()),
        "threads": str(torch.get_num_threads()),
        "CUDA": torch.version.cuda or "not built in",
        "GPUs": "; ".join(f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB" for gpu in gpus) or "none",
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # imported from a checkout that was never installed
        return None


def _commit() -> str | None:
    root = Path(__file__).resolve().parents[2]
    # An installed package may be inside another project's checkout, whose commit is irrelevant.
    if not (root / ".git").exists():
        return None
    try:
        run = subprocess.run(
            # The hash alone, without tags, and `-dirty` behind it where the checkout has other changes.
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()
