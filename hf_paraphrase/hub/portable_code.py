"""Code of this package that repositories carry, so that it runs where the package is not installed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files

from .. import models

__all__ = ["REQUIREMENTS", "find_handler", "find_modules"]

# What this code needs, as pyproject.toml has it.
REQUIREMENTS = "torch>=2.6\ntransformers>=5.24\n"


def find_modules(name: str) -> dict[str, Path]:
    """A module of `models` and those that it imports, by the names of their files.

    Args:
        name: Of the module.
    """
    first = Path(models.__file__).with_name(f"{name}.py")
    return {path.name: path for path in map(Path, [first, *get_relative_import_files(first)])}


def find_handler(files: Collection[str], writes: bool) -> dict[str, Path | bytes]:
    """What an Inference Endpoint needs beside a checkpoint: `handler.py` and what it imports.

    Args:
        files: Those of the checkpoint, which may have brought the pipeline itself.
        writes: Whether its model writes texts, and so needs the pipeline.
    """
    pipeline = "pipeline_text2text"
    modules = find_modules(pipeline) if writes and f"{pipeline}.py" not in files else {}
    own = {"handler.py": Path(__file__).with_name("handler.py"), "requirements.txt": REQUIREMENTS.encode()}
    return {**modules, **own}
