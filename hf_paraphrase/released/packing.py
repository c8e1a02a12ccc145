"""Checkpoints in a quarter of their size: matrices as 8-bit numbers, with a scale for each row."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from ..common.errors import InputError
from ..common.files import copy_file, write_directory

# Not model.safetensors: transformers would load the 8-bit numbers as if they were the weights.
PACKED_FILE, WEIGHTS_FILE = "packed.safetensors", "model.safetensors"
SCALE = "{}.scale"
OTHERS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
CARD_FILE = "README.md"
LARGEST = 16_000_000  # bytes of weights


def pack(checkpoint: Path, folder: Path, card: Path | None = None) -> int:
    """Write the packed form of a checkpoint; a folder of that name is replaced.

    Args:
        checkpoint: Folder with config, tokenizer and weights in one file.
        folder: Where the packed form goes.
        card: Its card; None for the checkpoint's own, if it has one.

    Returns:
        The bytes of the packed weights.

    Raises:
        InputError: A file of the checkpoint is missing, or its packed weights are larger than `LARGEST`.
    """
    if missing := [name for name in (*OTHERS, WEIGHTS_FILE) if not (checkpoint / name).is_file()]:
        raise InputError(f"{checkpoint} has no {', '.join(missing)}: name a folder that `save_pretrained` wrote")
    packed: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(checkpoint / WEIGHTS_FILE).items():
        if tensor.ndim == 2 and min(tensor.shape) > 1 and tensor.is_floating_point():
            packed[name], packed[SCALE.format(name)] = _round_rows(tensor.float())
        else:
            packed[name] = tensor
    size = sum(tensor.nbytes for tensor in packed.values())
    if size > LARGEST:
        raise InputError(f"{checkpoint}: the packed weights have {size:,} bytes, more than {LARGEST:,}")
    card = card or checkpoint / CARD_FILE
    write_directory(folder, lambda empty: _write(empty, checkpoint, card, PACKED_FILE, packed))
    return (folder / PACKED_FILE).stat().st_size


def unpack(packed: Path, folder: Path) -> None:
    """Unpack a packed checkpoint into a folder.

    Args:
        packed: What `pack` wrote.
        folder: Where the checkpoint goes; it is made.
    """
    tensors = load_file(packed / PACKED_FILE)
    weights = {}
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            weights[name] = tensor * tensors[SCALE.format(name)]
        elif tensors.get(name.removesuffix(SCALE.format("")), tensor).dtype != torch.int8:
            weights[name] = tensor
    folder.mkdir(parents=True)
    _write(folder, packed, packed / CARD_FILE, WEIGHTS_FILE, weights)
    # The code of an architecture of this package is never packed: it is that of the package that unpacks.
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if hasattr(config, "save_code"):
        config.save_code(folder)


def _round_rows(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest multiples of a row's largest value / 127, and these steps, shape (rows, 1)."""
    steps = matrix.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
    return (matrix / steps).round().to(torch.int8), steps


def _write(folder: Path, source: Path, card: Path, weights_file: str, weights: dict[str, torch.Tensor]) -> None:
    for name in OTHERS:
        copy_file(source / name, folder / name)
    if card.is_file():
        copy_file(card, folder / CARD_FILE)
    save_file(weights, folder / weights_file, {"format": "pt"})
