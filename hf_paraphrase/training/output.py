from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

from ..common.files import LOCK_FILE
from ..errors import InputError
from .checkpoints import Checkpoints
from .recipe import Recipe, load_recipe

__all__ = ["check_output", "clear_output"]

# A run's files in its output folder besides the exported model; a new run removes them.
RUN_FILES = (
    "checkpoints",
    "recipe",
    "retriever",
    "tokenizer",
    "trackers",
    "log_history.jsonl",
    "training_summary.json",
    "learning_curves.png",
)
MODEL_FILES = ("config.json", "generation_config.json", "model*.safetensors*", "tokenizer*.json")
# Fields that may change when a run is resumed: the weights it ends with do not depend on them.
FREE_FIELDS = {
    "data_dir",
    "disable_tqdm",
    "early_stopping_patience",
    "logging_steps",
    "max_train_time",
    "report_to",
    "save_steps",
}
DURATION_FIELDS = {"max_steps", "num_train_epochs"}
SCHEDULES_OVER_THE_DURATION = {"cosine", "cosine_with_restarts", "linear", "polynomial"}


def check_output(recipe: Recipe, directory: Path, overwrite: bool, resume: bool) -> Path | None:
    """Find out whether a run may start in its output folder.

    Args:
        recipe: Of the run.
        directory: Its output folder, which need not exist.
        overwrite: An existing run may be removed.
        resume: An existing run is resumed; one without a checkpoint starts again.

    Returns:
        The checkpoint to resume from; None to start anew.

    Raises:
        FileExistsError: If the folder is not empty and neither flag is set.
        InputError: If the folder to resume in holds something else, or the recipe is not the one the run began with.
    """
    if overwrite and resume:
        raise InputError("--overwrite and --resume exclude each other: start anew, or go on?")
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"output folder {directory} is a file; name another")
    if resume:
        checkpoint = Checkpoints(directory).newest()
        if checkpoint is None:
            _check_unfinished(directory)
            return None
        _check_same_recipe(load_recipe(directory / "recipe"), recipe, directory)
        return checkpoint
    if not overwrite and _list(directory):
        raise FileExistsError(
            f"output folder {directory} is not empty; name another, go on with --resume or start anew with --overwrite"
        )
    return None


def _list(directory: Path) -> list[str]:
    """The contents of an output folder, if it exists."""
    return sorted(path.name for path in directory.glob("*") if path.name != LOCK_FILE)


def _check_unfinished(directory: Path) -> None:
    """Refuse to overwrite anything except the files of a run without a checkpoint."""
    others = [name for name in _list(directory) if name.removeprefix(".").removesuffix(".part") not in RUN_FILES]
    if (directory / "training_summary.json").is_file() or others:
        there = (others or ["training_summary.json"])[0]
        raise InputError(
            f"--resume: {directory} holds no checkpoint, but {there}; name another folder, or start anew with "
            "--overwrite"
        )


def clear_output(directory: Path) -> None:
    """Remove an earlier run from an output folder, and nothing that a run does not make."""
    for pattern in RUN_FILES + MODEL_FILES:
        for path in directory.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_same_recipe(began: Recipe, recipe: Recipe, directory: Path) -> None:
    free = set(FREE_FIELDS)
    if recipe.training.lr_scheduler_type not in SCHEDULES_OVER_THE_DURATION:
        free |= DURATION_FIELDS
    before = began.model_config | asdict(began.training)
    now = recipe.model_config | asdict(recipe.training)
    for name in sorted((before.keys() | now.keys()) - free):
        if before.get(name) != now.get(name):
            raise InputError(
                f"--resume: the run in {directory} began with `{name}: {before.get(name)}`, not {now.get(name)}; "
                "give the same value, or start anew with --overwrite"
            )
