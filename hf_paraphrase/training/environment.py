from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

__all__ = ["describe_environment"]

PACKAGES = ("hf-paraphrase", "torch", "transformers", "datasets", "tokenizers", "accelerate")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """What a result depends on beside its recipe: device, threads, versions, commit and date.

    Args:
        device: Where the model ran.
    """
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := _version(package))},
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # imported from a checkout that was never installed
        return None


def _commit() -> str | None:
    root = Path(__file__).resolve().parents[2]
    # An installed package may lie inside somebody else's checkout, whose commit says nothing about it.
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
