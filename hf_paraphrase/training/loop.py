from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import platform
import shutil
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import ProjectConfiguration, set_seed
from datasets import DatasetDict, IterableDataset, IterableDatasetDict
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..checkpoints.pretrained import load_tokenizer
from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.files import LOCK_FILE, locked, write_directory, write_json
from ..models.layers.precision import runs_lstm
from .checkpoints import Checkpoints, align_memory, load_checkpoint, save_tokenizer
from .recipe import Recipe, load_recipe
from .reporting import check_trackers, plot_learning_curves
from .run import StopSignals, TrainingRun, follow_launcher
from .tasks import TASKS
from .train_rows import read_windows

logger = logging.getLogger(__name__)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

# One of them is set wherever there are several processes: by torchrun, or by an MPI.
WORLD_SIZES = {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"}


def train(
    recipe: Recipe,
    output_dir: str | os.PathLike,
    *,
    data_dir: str | os.PathLike | None = None,
    dataset: DatasetDict | IterableDatasetDict | None = None,
    overwrite: bool = False,
    resume: bool = False,
    trust_remote_code: bool = False,
) -> dict[str, Any]:
    """Train a model by a recipe; the best one by validation loss ends in the output folder, ready to load.

    Beside the model and its tokenizer, the folder gets `recipe/`, `checkpoints/`, `log_history.jsonl`,
    `training_summary.json` and, where matplotlib is installed, `learning_curves.png`.

    Args:
        data_dir: Folder with the corpus's files, instead of the recipe's.
        dataset: Loaded rows instead of the recipe's corpus: splits `train` and `validation`, with the task's columns
            (`source` and `target` for paraphrasing). A streamed `train` is read while it is trained on,
            `shuffle_buffer_size` rows at a time, and never held whole.
        overwrite: Remove an earlier run from `output_dir`.
        resume: Resume the run in `output_dir` from its newest checkpoint, or start if it has none yet.
        trust_remote_code: Let the checkpoints that the recipe names (`pretrained`, `tokenizer`, `reward`,
            `retriever_encoder`) run their own code.

    Returns:
        What `training_summary.json` holds.

    Raises:
        InputError: For anything in recipe, data or flags that the user has to fix; before training wherever possible.
        FileExistsError: If `output_dir` is not empty, without `overwrite` or `resume`.
        TrainingInterrupted: If SIGTERM or Ctrl-C stopped the training, after saving.
        OSError: If a checkpoint cannot be written; the one before stays.
    """
    output_dir = Path(output_dir)
    check_output(recipe, output_dir, overwrite, resume)
    follow_launcher()
    accelerator = _make_accelerator(recipe, output_dir)
    with locked(output_dir) if accelerator.is_main_process else nullcontext():
        accelerator.wait_for_everyone()
        # Checked again, now that no other run can change the folder.
        checkpoint = check_output(recipe, output_dir, overwrite, resume)
        accelerator.wait_for_everyone()
        return _train(recipe, output_dir, accelerator, checkpoint, data_dir, dataset, trust_remote_code)


def _train(
    recipe: Recipe,
    output_dir: Path,
    accelerator: Accelerator,
    checkpoint: Path | None,
    data_dir: str | os.PathLike | None,
    dataset: DatasetDict | None,
    trust_remote_code: bool,
) -> dict[str, Any]:
    """Train from a checkpoint, or from the start if None; other arguments as in `train`."""
    training = recipe.training
    if accelerator.device.type == "cpu":
        keep_freed_memory()
    # Asked now: the working tree may change while the model trains.
    environment = describe_environment(accelerator.device)
    task = TASKS[training.task](training, trust_remote_code)
    set_seed(training.seed)
    with accelerator.main_process_first():
        rows = task.load(data_dir, dataset)
        stream = rows["train"] if isinstance(rows["train"], IterableDataset) else None
        if stream is not None:
            _, _, rows["train"] = next(read_windows(stream, training.shuffle_buffer_size))
        if accelerator.is_main_process:
            if checkpoint is None:
                tokenizer = task.make_tokenizer(
                    rows["train"], recipe.make_config().get_text_config(decoder=True).vocab_size
                )
                clear_output(output_dir)
                write_directory(output_dir / "tokenizer", lambda folder: save_tokenizer(tokenizer, folder))
            recipe.save(output_dir / "recipe")
        tokenizer = load_tokenizer(output_dir / "tokenizer", trust_remote_code)
        data = task.encode(rows, tokenizer)
        if accelerator.is_main_process and checkpoint is None:
            task.save_assets(data, output_dir)

    config = recipe.make_config(tokenizer)
    if checkpoint is None:
        model, resumed = task.make_model(config, data), None
    else:
        resumed = load_checkpoint(checkpoint)
        model = task.resume_model(checkpoint, config, data)
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            Checkpoints(output_dir).remove_others(resumed[0])
    align_memory(model)
    task.prepare_model(model, data)
    if model.can_generate():
        model.generation_config = _make_generation_config(recipe, model, tokenizer)
    run = TrainingRun(recipe, task, output_dir, accelerator, model, data, resumed, stream)
    first_step = run.state.step
    with StopSignals() as signals:
        run.fit(signals)
    summary = _summarise(run, environment)
    if accelerator.is_main_process:
        if run.state.step > first_step:
            _remove(output_dir, RESULTS)
        Checkpoints(output_dir).export_best(run.state)
        write_json(output_dir / "training_summary.json", summary)
        if importlib.util.find_spec("matplotlib"):
            plot_learning_curves({recipe.name: summary}, output_dir / "learning_curves.png")
    return summary


def _make_accelerator(recipe: Recipe, output_dir: Path) -> Accelerator:
    check_trackers(recipe.training.report_to)
    # Several processes without a GPU only connect if told to use the CPU.
    cpu = not torch.accelerator.is_available()
    # Called first, for it knows the device; the Accelerator, made after it, takes it over.
    process = PartialState(cpu=cpu)
    precision = _choose_precision(recipe.training.mixed_precision, process)
    try:
        accelerator = Accelerator(
            cpu=cpu,
            mixed_precision=precision,
            log_with=recipe.training.report_to or None,
            project_config=ProjectConfiguration(str(output_dir), logging_dir=str(output_dir / "trackers")),
        )
    except ValueError as error:  # bf16 on a device without it, for one
        raise InputError(f"`mixed_precision: {recipe.training.mixed_precision}`: {error}") from error
    if accelerator.device.type == "cpu":
        _check_launcher()
    return accelerator


def _choose_precision(wanted: str | None, process: PartialState) -> str | None:
    """Return `wanted` (None for the launcher's choice), or "no" for a CPU that cannot run it, and warn of that."""
    name = wanted or os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if name not in DTYPES or process.device.type != "cpu" or runs_lstm(DTYPES[name]):
        return wanted
    if process.is_main_process:
        logger.warning("`mixed_precision: %s`: this CPU has no fast arithmetic for it; training in float32", name)
    return "no"


def _check_launcher() -> None:
    """Refuse to be the only process where `accelerate launch` was asked for several.

    On the CPU it sets the port at which they should meet, and leaves starting them to MPI.
    """
    if {"ACCELERATE_USE_CPU", "MASTER_PORT"} <= os.environ.keys() and WORLD_SIZES.isdisjoint(os.environ):
        raise InputError(
            "`accelerate launch` was asked for several processes, but this is the only one: on the CPU it starts them "
            "by MPI (--mpirun_hostfile). Without: torchrun --standalone --nproc-per-node N -m hf_paraphrase train …"
        )


def _make_generation_config(
    recipe: Recipe, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> GenerationConfig:
    """Complete the recipe's generation config by the model's special tokens, which have to be the tokenizer's."""
    config = model.config
    generation_config = recipe.make_generation_config(model.generation_config if recipe.training.pretrained else None)
    if tokenizer.pad_token_id is None:
        raise InputError("`tokenizer`: batches need a padding token, and it has none")
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        if getattr(generation_config, name) is None:
            # Not every config has all of them: T5's has no `bos_token_id`.
            setattr(generation_config, name, getattr(config, name, None))
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        expected = getattr(tokenizer, name)
        for part in (config, generation_config):
            if expected is not None and getattr(part, name, None) not in (None, expected):
                raise InputError(f"`{name}: {getattr(part, name)}`, but it is {expected} in the tokenizer; set it so")
    return generation_config


def _summarise(run: TrainingRun, environment: dict[str, Any]) -> dict[str, Any]:
    state, evaluations = run.state, run.state.evaluations
    return {
        "recipe": asdict(run.recipe),
        "model_type": run.model.config.model_type,
        # Of the merged model.
        "num_parameters": sum(one.numel() for name, one in run.model.named_parameters() if ".lora_" not in name),
        "vocab_size": run.model.config.get_text_config(decoder=True).vocab_size,
        "train_pairs": len(run.train_rows),
        "validation_pairs": len(run.encoded["validation"]),
        "mixture": run.mixture,
        "steps": state.step,
        "epochs": run.epoch,
        "best": next(entry for entry in evaluations if entry["step"] == state.best_step),
        "best_cost": state.best_cost,
        "last": evaluations[-1],
        "target_tokens_per_second": state.train_tokens / state.train_seconds,
        "train_seconds": state.train_seconds,
        "seconds": state.seconds,
        "cpu_seconds": state.cpu_seconds,
        "train_cpu_seconds": state.train_cpu_seconds,
        "seed": run.training.seed,
        "processes": run.accelerator.num_processes,
        "mixed_precision": run.accelerator.mixed_precision,
        "environment": environment,
        "evaluations": evaluations,
    }


# Numbers of glibc's malloc.h, and the largest values it takes.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_TRIM, LARGEST_MMAP = 2**31 - 1, 32 << 20


def keep_freed_memory() -> None:
    """Let this process keep the memory that a training step frees, for the next one. Only glibc gives it back.

    The tensors that the backward pass needs are freed together. glibc would return their pages to the system, which
    must clear new ones at the next step.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP)
    libc.mallopt(M_TRIM_THRESHOLD, LARGEST_TRIM)


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
MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "model*.safetensors*",
    "tokenizer*.json",
    "chat_template.jinja",
    "additional_chat_templates",
    "prompt.yaml",
)
# What was measured of the model that was there before; its card would have it.
RESULTS = "evaluation/results-*.json"
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
    """Return the checkpoint to resume from, None to start anew; or refuse an output folder.

    Args:
        directory: It need not exist.
        resume: An existing run is resumed; one without a checkpoint starts again.

    Raises:
        FileExistsError: If the folder is not empty and neither flag is set.
        InputError: If the folder to resume in holds something else, or the recipe is not the one the run began with.
    """
    if overwrite and resume:
        raise InputError("--overwrite and --resume exclude each other: start anew, or go on?")
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"output folder {directory} is a file; name another")
    there = sorted(path.name for path in directory.glob("*") if path.name != LOCK_FILE)
    if resume:
        if checkpoint := Checkpoints(directory).newest():
            _check_same_recipe(load_recipe(directory / "recipe"), recipe, directory)
            return checkpoint
        # Only the files of a run without a checkpoint are overwritten.
        others = [name for name in there if name.removeprefix(".").removesuffix(".part") not in RUN_FILES]
        others += [name for name in there if name == "training_summary.json"]
        if others:
            raise InputError(
                f"--resume: {directory} holds no checkpoint, but {others[0]}; name another folder, or start anew with "
                "--overwrite"
            )
    elif there and not overwrite:
        raise FileExistsError(
            f"output folder {directory} is not empty; name another, go on with --resume or start anew with --overwrite"
        )
    return None


def clear_output(directory: Path) -> None:
    """Remove an earlier run from an output folder, and nothing that a run does not make."""
    for pattern in (*RUN_FILES, *MODEL_FILES, RESULTS):
        _remove(directory, pattern)


def _remove(directory: Path, pattern: str) -> None:
    for path in directory.glob(pattern):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_same_recipe(began: Recipe, recipe: Recipe, directory: Path) -> None:
    free = set(FREE_FIELDS)
    follows_duration = recipe.training.lr_scheduler_type in SCHEDULES_OVER_THE_DURATION
    if not (follows_duration or recipe.training.loss_follows_duration):
        free |= DURATION_FIELDS
    before = began.model_config | asdict(began.training)
    now = recipe.model_config | asdict(recipe.training)
    for name in sorted((before.keys() | now.keys()) - free):
        if before.get(name) != now.get(name):
            raise InputError(
                f"--resume: the run in {directory} began with `{name}: {before.get(name)}`, not {now.get(name)}; "
                "give the same value, or start anew with --overwrite"
            )
