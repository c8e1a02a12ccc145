"""The systems side by side on free text: trained on groups of sentences, measured on each kind of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..papers.table import Settings, Trained
from .trainings import Run, list_runs

__all__ = ["SETTINGS"]

# The schedule ends with the budget; batches are small enough for some thousand steps within an hour.
SHARED = {"lr_scheduler_type": "linear", "max_tokens_per_batch": 2500}
SETTINGS = Settings(
    {
        "residual LSTM with attention": Trained("residual-lstm-open", SHARED),
        "DNPG": Trained("dnpg-open", SHARED),
        "copy editor": Trained("copy-editor-open", SHARED),
        "FSET": Trained("fset-open", SHARED),
        "Transformer": Trained("transformer-open", {**SHARED, "encoder_layers": 3, "decoder_layers": 3}),
        "SSRU, deep encoder": Trained("ssru-open", SHARED),
    },
    minutes=240,
)
VALIDATION_GROUPS = 200  # of each file


def _corpus(path: str, max_samples: int) -> dict[str, Any]:
    """How a file of groups is read and split, as arguments of `load_dataset`."""
    kwargs = {"data_files": str(Path(path).resolve()), "validation_size": VALIDATION_GROUPS, "test_size": max_samples}
    return {"dataset": "groups", "dataset_name": "filtered", "dataset_kwargs": kwargs}


def _list_runs(settings: Settings, files: Sequence[str], folder: Path, seed: int, max_samples: int) -> list[Run]:
    """The trainings, all on the same mixture."""
    mixture = [{"name": Path(path).stem, **_corpus(path, max_samples)} for path in files]
    systems = {name: replace(one, fields={**one.fields, "mixture": mixture}) for name, one in settings.systems.items()}
    return list_runs(replace(settings, systems=systems), folder, [seed])
