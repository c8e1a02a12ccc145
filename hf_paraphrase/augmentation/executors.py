"""Where tasks run: datatrove's executors for Slurm and Ray, and for processes one that notices when they die."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from importlib.util import find_spec
from typing import Any

import torch
from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor, SlurmPipelineExecutor
from datatrove.executor.base import PipelineExecutor
from datatrove.io import DataFolder
from datatrove.pipeline.base import PipelineStep
from tqdm.auto import tqdm

from ..common.errors import InputError
from ..common.progress import is_watched

# Log lines of a task that is not the first of its machine go to its file alone.
QUIET = 1


class AugmentationError(OSError):
    """Some tasks failed; the same command resumes."""


class ProcessExecutor(LocalPipelineExecutor):
    """Runs tasks in processes of this machine.

    datatrove's own executor waits forever for a killed process (out of memory, for example), and leaves its workers
    running when it is killed itself.
    """

    def run(self) -> None:
        """Run the tasks that are not done; AugmentationError if some fail, InputError if a user can mend it."""
        ranks = self.get_incomplete_ranks()
        failures: list[BaseException] = []
        done = self.world_size - len(ranks)
        with tqdm(
            total=self.world_size, initial=done, desc="augmenting", unit="task", disable=not is_watched()
        ) as progress:
            if self.workers == 1:
                for rank in ranks:
                    try:
                        deepcopy(self)._run_for_rank(rank, QUIET)
                    except Exception as error:
                        failures.append(error)
                    progress.update()
            else:
                failures = self._run_in_processes(ranks, progress)
        for failure in failures:
            if isinstance(failure, InputError):
                raise failure
        if failures:
            first, reason = failures[0], f"{type(failures[0]).__name__}: {failures[0]}"
            if isinstance(first, BrokenProcessPool):
                reason = "a process was killed, as systems do for want of memory"
            raise AugmentationError(
                f"{len(failures)} of {self.world_size} tasks could not be finished ({reason}); the same command does "
                f"what is missing; see {self.logging_dir.resolve_paths('logs')}"
            ) from first

    def _run_in_processes(self, ranks: Sequence[int], progress: tqdm) -> list[BaseException]:
        context = multiprocessing.get_context(self.start_method)
        if self.start_method == "forkserver":  # that each process need not import it anew
            context.set_forkserver_preload(["hf_paraphrase.augmentation.steps"])
        places = context.SimpleQueue()
        for place in range(self.workers):
            places.put(place)
        threads = max(1, torch.get_num_threads() // self.workers)
        failures = []
        with ProcessPoolExecutor(self.workers, context, _begin, (places, threads)) as pool:
            try:
                for future in as_completed([pool.submit(self._run_for_rank, rank, QUIET) for rank in ranks]):
                    if (failure := future.exception()) is not None:
                        failures.append(failure)
                    progress.update()
            except KeyboardInterrupt:
                for process in multiprocessing.active_children():
                    process.kill()
                raise
        return failures


def _begin(places: Any, threads: int) -> None:
    os.environ["LOCAL_RANK"] = str(places.get())
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


EXECUTORS: dict[str, type[PipelineExecutor]] = {
    "local": ProcessExecutor,
    "slurm": SlurmPipelineExecutor,
    "ray": RayPipelineExecutor,
}
# Arguments that have their own options, or are not allowed.
OURS = ("self", "pipeline", "tasks", "workers", "logging_dir", "skip_completed")


def make_executor(
    name: str,
    pipeline: Sequence[PipelineStep],
    tasks: int,
    workers: int,
    logging_dir: DataFolder,
    options: Mapping[str, Any] | None = None,
) -> PipelineExecutor:
    """Make what runs the tasks, one of `EXECUTORS`, with arguments that `check_executor` has seen.

    Args:
        name: Which.
        pipeline: The steps of a task.
        tasks: How many there are.
        workers: How many run at a time.
        logging_dir: Folder for logs and completion marks.
        options: Further arguments of datatrove's executor, such as Slurm's `partition` and `time`.
    """
    # Jobs start in the environment of whoever submits them.
    usual = {"job_name": "augment", "qos": None} if name == "slurm" else {}
    where = {"tasks": tasks, "workers": workers, "logging_dir": logging_dir}
    return EXECUTORS[name](list(pipeline), **where, **{**usual, **(options or {})})


def check_executor(name: str, options: Mapping[str, Any]) -> None:
    """Raise InputError for an unknown or missing option, or an executor that is unknown or not installed."""
    if name not in EXECUTORS:
        raise InputError(f"`executor` must be one of {', '.join(EXECUTORS)}, not {name}")
    every = inspect.signature(EXECUTORS[name].__init__).parameters
    known = {key: value for key, value in every.items() if key not in OURS}
    if unknown := sorted(options.keys() - known.keys()):
        raise InputError(f"the executor {name} has no option `{unknown[0]}`; it has: {', '.join(known)}")
    missing = [key for key, value in known.items() if value.default is value.empty and key not in options]
    if missing:
        raise InputError(f"the executor {name} needs {' and '.join(missing)}, as in {missing[0]}=…")
    if name == "slurm" and "SLURM_ARRAY_TASK_ID" not in os.environ and shutil.which("sbatch") is None:
        raise InputError("the executor slurm submits jobs with sbatch, which is not here: start this where it is")
    if name == "ray" and find_spec("ray") is None:
        raise InputError("the executor ray needs Ray; install it with: pip install ray")
