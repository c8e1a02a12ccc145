from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from ..checkpoints.pretrained import load_model, make_model
from ..checkpoints.trust import TRUST_HINT
from ..common.errors import InputError
from ..common.files import copy_file, write_directory
from .lora import has_lora, merge_lora, save_lora

STATE_FILE, TENSOR_FILE = "training_state.json", "training_state.pt"


@dataclass
class TrainingState:
    """Progress of a training run: everything except tensors that a resumed run needs."""

    data_fingerprint: str  # of the training pairs (of a stream, the first ones), which a resumed run must see again
    step: int = 0  # optimizer steps taken
    best_step: int | None = None  # that of the best validation
    best_cost: float | None = None  # what decides that, as `Task.cost` says: the validation loss, for most tasks
    seconds: float = 0.0  # time spent, all sessions together
    cpu_seconds: float = 0.0  # processor time of all processes and threads, up to the last checkpoint
    train_cpu_seconds: float = 0.0  # of these, those spent in the optimizer steps of one process
    train_seconds: float = 0.0  # of `seconds`, those spent in optimizer steps
    train_tokens: int = 0  # target tokens trained on
    loss_since_log: float = 0.0  # training loss since the last entry of the log, summed over tokens
    tokens_since_log: int = 0  # the tokens of that sum
    loss_since_eval: float = 0.0  # the same since the last validation
    tokens_since_eval: int = 0
    stream: dict[str, Any] | None = None  # where in a streamed corpus the run is, as `StreamedRows.place`
    history: list[dict[str, Any]] = field(default_factory=list)  # the log, of training and of validation (`eval_loss`)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        return [entry for entry in self.history if "eval_loss" in entry]


class Checkpoints:
    """The folder `checkpoints/` of a run: `last-STEP`, to resume from, and `best-STEP`, to use.

    Both are complete pretrained folders, except that `last-STEP` of a run with `lora` holds the adapter alone. Each
    appears whole, by a rename, and what it replaces is removed afterwards: whenever a run is killed, the newest
    `last-STEP` and the `best-STEP` that it names are there.
    """

    def __init__(self, directory: Path):
        self.directory = directory / "checkpoints"

    def newest(self) -> Path | None:
        """The checkpoint to resume from."""
        # Steps have eight digits, so that names sort by step; unfinished folders start with a dot.
        return max(self.directory.glob("last-*"), default=None)

    def best(self, state: TrainingState) -> Path:
        return self.directory / f"best-{state.best_step:08d}"

    def save_best(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, state: TrainingState) -> None:
        """Save the model as the best; `save_last` has to follow, and removes the one before."""
        self._write(self.best(state), lambda directory: save_pretrained(model, tokenizer, directory))

    def save_last(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, state: TrainingState, tensors: dict[str, Any]
    ) -> None:
        """Save everything that a resumed run needs, then remove older checkpoints.

        A checkpoint of this very step is left as it is: a run that was resumed from it has lost nothing. `tensors` are
        states of optimizer, schedule and random generators: tensors and plain values, nested.
        """

        def write(directory: Path) -> None:
            if has_lora(model):
                save_lora(model, directory)
            else:
                save_pretrained(model, tokenizer, directory)
            (directory / STATE_FILE).write_text(json.dumps(asdict(state)), encoding="utf-8")
            torch.save(tensors, directory / TENSOR_FILE)

        last = self.directory / f"last-{state.step:08d}"
        if not last.exists():
            self._write(last, write)
        self.remove_others(state)

    def remove_others(self, state: TrainingState) -> None:
        """Remove every checkpoint except the last and the best, including leftovers of a run killed while saving."""
        keep = {self.directory / f"last-{state.step:08d}"}
        if state.best_step is not None:
            keep.add(self.best(state))
        for pattern in ("last-*", "best-*", ".*.part"):
            for old in set(self.directory.glob(pattern)) - keep:
                shutil.rmtree(old)

    def export_best(self, state: TrainingState) -> None:
        """Copy the files of the best checkpoint to the run's output folder."""
        best = self.best(state)
        for file in filter(Path.is_file, best.rglob("*")):
            path = self.directory.parent / file.relative_to(best)
            path.parent.mkdir(exist_ok=True)
            copy_file(file, path)

    def _write(self, path: Path, write: Callable[[Path], None]) -> None:
        try:
            write_directory(path, write)
        # On a full disk safetensors and torch raise their own errors.
        except (OSError, RuntimeError, SafetensorError) as error:
            free = shutil.disk_usage(self.directory.parent).free / 2**20
            previous = self.newest()
            kept = f"{previous} is whole; make room and resume from it" if previous else "no earlier one was saved"
            raise OSError(
                f"could not write {path}: is its disk full ({free:,.0f} MiB free)? {kept} ({error})"
            ) from error


def load_checkpoint(checkpoint: Path) -> tuple[TrainingState, dict[str, Any]]:
    """Read what `Checkpoints.save_last` wrote beside the model: progress, and tensors; InputError for damage."""
    with naming_damage(checkpoint):
        state = TrainingState(**json.loads((checkpoint / STATE_FILE).read_text(encoding="utf-8")))
        return state, torch.load(checkpoint / TENSOR_FILE, weights_only=True)


def load_trained(checkpoint: Path, auto_class: type, trust_remote_code: bool = False) -> PreTrainedModel:
    """Load the model of a checkpoint, with the same trainable parameters as a new model."""
    with naming_damage(checkpoint):
        model = load_model(auto_class, checkpoint, trust_remote_code)
        # Loading makes every parameter trainable, even tables that the architecture keeps as they are.
        with torch.device("meta"):
            made = make_model(auto_class, model.config, trust_remote_code)
    for name, parameter in made.named_parameters():
        model.get_parameter(name).requires_grad_(parameter.requires_grad)
    return model


@contextmanager
def naming_damage(checkpoint: Path) -> Iterator[None]:
    """Say of errors in reading a checkpoint's files that it is damaged."""
    try:
        yield
    except (OSError, ValueError, TypeError, RuntimeError, UnpicklingError, SafetensorError) as error:
        if TRUST_HINT in str(error):
            raise
        raise InputError(f"checkpoint {checkpoint} is damaged ({error}); start anew with --overwrite") from error


def align_memory(model: nn.Module) -> None:
    """Move all weights to memory from torch's allocator, like those of a new model.

    Weights that were loaded lie in the middle of a file's memory, where kernels for the CPU divide vectors otherwise
    and so round otherwise: a resumed run would part from one never stopped after some dozens of steps.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)


def save_pretrained(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save a model as `from_pretrained` and `pipeline` load it, adapters merged.

    It shows no progress bar, which would break the training's.
    """
    shows_bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model.save_pretrained(directory, state_dict=merge_lora(model) if has_lora(model) else None)
        save_tokenizer(tokenizer, directory)
    finally:
        if shows_bar:
            logging.enable_progress_bar()


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save a tokenizer; where its files cannot be written, as on a full disk, tokenizers raises a plain Exception.

    Raises:
        OSError: They cannot.
    """
    try:
        tokenizer.save_pretrained(directory)
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise OSError(f"could not write {directory}: {error}") from error


def get_random_state() -> dict[str, Any]:
    """The state of this process's random generators, as tensors and plain values."""
    numpy_state = cast(tuple[Any, ...], np.random.get_state())
    return {
        "python": random.getstate(),
        "numpy": [numpy_state[0], torch.from_numpy(numpy_state[1].astype(np.int64)), *numpy_state[2:]],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Put back what `get_random_state` returned."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"])
