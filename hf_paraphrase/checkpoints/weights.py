"""Checks that a model's weights are complete, its own, and finite; transformers initialises missing ones at random."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.logging import set_tqdm_hook

from ..common.bounds import check_bound
from ..common.errors import InputError

Shapes = Mapping[str, tuple[int, ...]]
# A base model without its head: means of its states are read, which need no pooler.
POOLER = re.compile(r"(^|\.)pooler\.")
# Some tensors of a file are stored as four-bit numbers; what else a model may have without a file is small.
MOST_PER_BYTE, SPARE = 4, 10_000_000
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
SHOWN = 3
SECONDS_WITHOUT_BAR = 3.0


def check_keys(model: PreTrainedModel, info: Mapping[str, Any], source: str, headless: bool, new_head: bool) -> None:
    """Refuse a model some of whose weights are missing from its files, or whose files have others.

    What the model ties, or declares as ignorable, is neither in transformers' report. Tables of sines, which older
    versions left out of the files, are computed.

    Args:
        model: As `from_pretrained` made it.
        info: The report that `output_loading_info` asks for.
        source: Names the checkpoint in the error.
        headless: The model is the base of one with a head, whose weights are left.
        new_head: The model is to be trained with a head that the checkpoint lacks, instead of one that it has.

    Raises:
        InputError: They differ; the message names the first few.
    """
    missing = {name for name in info["missing_keys"] if not _is_computed(model, name)}
    unexpected = set(info["unexpected_keys"])
    if headless:
        missing = {name for name in missing if not POOLER.search(name)}
    if new_head:
        base = f"{model.base_model_prefix}."
        missing = {name for name in missing if model.base_model is model or name.startswith(base)}
    if headless or new_head:
        unexpected = set()
    for names, problem in ((missing, "lack"), (unexpected, "hold unexpected")):
        if names:
            raise InputError(f"{source}: the weights {problem} {_name_some(names)}; config.json has others")


def check_finite(model: nn.Module, source: str) -> None:
    """Refuse a model with a weight that is NaN or infinite.

    Raises:
        InputError: It has; the message names the tensors.
    """
    names = {name for name, tensor in model.state_dict().items() if not _is_finite(tensor)}
    if names:
        raise InputError(f"{source}: the weights {_name_some(names)} are not finite")


def _is_finite(tensor: torch.Tensor) -> bool:
    if tensor.is_meta or not tensor.is_floating_point():
        return True
    # A sum reads the tensor once and allocates nothing; it is finite unless a part is not, or it overflows.
    return bool(tensor.sum(dtype=torch.float32).isfinite()) or bool(tensor.isfinite().all())


def read_shapes(model: nn.Module) -> Shapes:
    """The shapes of all tensors of a model, by name."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def check_plan(shapes: Shapes, source: str, folder: Path | None = None) -> None:
    """Refuse a model too large for this machine, or for the files that are said to hold its weights.

    Args:
        shapes: Of the model that the configuration describes.
        source: Names the checkpoint in the error.
        folder: Holds the weights; None where they are new, or elsewhere.

    Raises:
        InputError: It is too large.
    """
    count = sum(torch.Size(shape).numel() for shape in shapes.values())
    check_bound("WEIGHTS", count, f"{source}: the number of weights that config.json describes")
    if folder is not None:
        size = sum(path.stat().st_size for kind in WEIGHTS for path in folder.glob(kind))
        if count > MOST_PER_BYTE * size + SPARE:
            raise InputError(f"{source}: config.json describes {count:,} weights, but the files hold {size:,} bytes")


def describe_mismatches(shapes: Shapes, folder: Path) -> str:
    """The tensors whose shapes in the files are not those of the model, for an error; empty where none is found."""
    found: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    wrong = [
        f"{name} has the shape {list(found[name])}, not {list(shape)}"
        for name, shape in shapes.items()
        if found.get(name, shape) != shape
    ]
    return "; ".join(wrong[:SHOWN])


def find_damaged(folder: Path) -> Path | None:
    """The first file of weights in a folder that cannot be opened."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt"):
                pass
        except (OSError, SafetensorError):
            return path
    return None


def _is_computed(model: PreTrainedModel, name: str) -> bool:
    """Whether a missing tensor is a table of sines."""
    return "Sinusoidal" in type(model.get_submodule(name.rpartition(".")[0])).__name__


def _name_some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - SHOWN:,} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more


@contextmanager
def muted_report() -> Iterator[None]:
    """Keep transformers from showing short bars, and its table of missing weights, which `check_keys` sums up."""
    # Not by its level, from which transformers concludes that it shall list the layers that no GPU shares.
    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(_is_error)
    previous = set_tqdm_hook(_delay_bar)
    try:
        yield
    finally:
        set_tqdm_hook(previous)
        logger.removeFilter(_is_error)


def _delay_bar(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return make(*args, **{"delay": SECONDS_WITHOUT_BAR, **kwargs})


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
