"""Trainings by the real command line that are killed at random moments: resumed, each ends as one never stopped."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import torch

from tests.training.tiny_runs import last_weights

from .trials import Trials

ROOT = Path(__file__).resolve().parents[2]
STEPS = 20
TRAIN = ["--recipe", "residual-lstm-synthetic", "--max_steps", STEPS, "--logging_steps", 1, "--save_steps", 5]
TRAIN += ["--eval_steps", 10, "--hidden_size", 32, "--embedding_size", 32, "--vocab_size", 300, "--dropout", 0.2]
TRAIN += ["--disable_tqdm", "true", "--dataset-kwargs", "train_size=600", "--dataset-kwargs", "validation_size=30"]
TRAIN += ["--dataset-kwargs", "test_size=5"]
COMMANDS = {
    1: ["-m", "hf_paraphrase", "train"],
    2: ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "scripts/train.py"],
}
# Of one training, most of which is importing.
MOST_SECONDS = 300


def kill_single(count: int, seed: int = 0) -> Trials:
    """Kill and resume `count` trainings in one process."""
    return kill("kills and resumes, one process", 1, count, seed)


def kill_pairs(count: int, seed: int = 0) -> Trials:
    """Kill and resume `count` trainings in two processes."""
    return kill("kills and resumes, two processes", 2, count, seed)


def kill(name: str, processes: int, count: int, seed: int = 0, first_step: int = 0) -> Trials:
    """Kill trainings at random moments, and resume each.

    Args:
        name: Of the trials.
        processes: Of each training.
        count: How many are killed.
        seed: Decides the moments.
        first_step: None is killed before it.
    """
    trials, draw = Trials(name), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        whole = start(processes, Path(scratch) / "whole")
        weights = None
        for number in range(count):
            folder, step = Path(scratch) / str(number), draw.randint(first_step, STEPS)
            moment = 0.1 * draw.random()
            with trials.trial(f"killed {moment:.3f} s after step {step}"):
                kill_at(start(processes, folder), folder, step, moment)
                finish(start(processes, folder, "--resume"))
                if weights is None:
                    finish(whole)
                    weights = last_weights(Path(scratch) / "whole")
                found = last_weights(folder)
                assert found.keys() == weights.keys()
                different = [key for key in weights if not torch.equal(weights[key], found[key])]
                assert not different, f"other weights: {', '.join(different)}"
    return trials


def start(processes: int, folder: Path, *options: str) -> subprocess.Popen:
    """Start a training with as many threads as this process has, even if moved to other cores: sums depend on it."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "ACCELERATE_USE_CPU": "true"}
    variables["OMP_NUM_THREADS"] = str(torch.get_num_threads())
    command = [sys.executable, *COMMANDS[processes], *TRAIN, "--output-dir", folder, *options]
    with folder.with_name(f"{folder.name}{''.join(options)}.log").open("w") as log:
        return subprocess.Popen([str(word) for word in command], env=variables, cwd=ROOT, stdout=log, stderr=log)


def kill_at(run: subprocess.Popen, folder: Path, step: int, moment: float) -> None:
    """Kill a training and its workers so many seconds after it has logged a step; one that is faster has ended."""
    end = time.monotonic() + MOST_SECONDS
    log = folder / "log_history.jsonl"
    while run.poll() is None and time.monotonic() < end and count_lines(log) < step:
        time.sleep(0.002)
    time.sleep(moment)
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [*psutil.Process(run.pid).children(recursive=True), psutil.Process(run.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    run.wait()


def finish(run: subprocess.Popen) -> None:
    code = run.wait(MOST_SECONDS)
    assert code == 0, f"`{' '.join(run.args[-3:])}` ended with {code}"


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0
