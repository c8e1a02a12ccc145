"""Code of this package that repositories carry, so that it runs where the package is not installed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..models.bundle import bundle

__all__ = ["REQUIREMENTS", "find_handler"]

# What this code needs, as pyproject.toml has it.
REQUIREMENTS = "torch>=2.13\ntransformers>=5.24\n"


def find_handler(files: Collection[str], writes: bool) -> dict[str, Path | bytes]:
    """Files that an Inference Endpoint needs besides a checkpoint: `handler.py` and what it imports.

    Args:
        files: Those of the checkpoint, which may have brought the pipeline itself.
        writes: Whether its model writes texts, and so needs the pipeline.
    """
    modules = bundle("search.pipeline_text2text") if writes and "search.py" not in files else {}
    own: dict[str, Path | bytes] = {
        "handler.py": Path(__file__).with_name("handler.py"),
        "requirements.txt": REQUIREMENTS.encode(),
    }
    return {**{name: text.encode() for name, text in modules.items()}, **own}
