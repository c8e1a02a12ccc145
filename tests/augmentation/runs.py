"""Augmentations in processes of their own, which may be killed."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import torch

from hf_paraphrase.augmentation import steps
from hf_paraphrase.augmentation.run import Augmentation, run_augmentation
from tests.generation.paraphrasers import random_sentences

# Of the checkpoint of `tests/cli`, whose model writes whatever comes to its mind.
OPTIONS = {"max_new_tokens": 5, "decoding": "sample", "num_candidates": 4, "seed": 3, "keep": [], "batch_size": 4}


def write_questions(path: Path, rows: int) -> Path:
    """A file with a question and a label in each line; some are blank."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["question", "label"])
        for number, text in enumerate(random_sentences(rows)):
            table.writerow(["" if number % 17 == 5 else text, number % 3])
    return path


def ask(source: object, model: object, **changes: object) -> Augmentation:
    """An augmentation of such a file."""
    asked = {"column": "question", "n": 2, "tasks": 6, "options": OPTIONS}
    return Augmentation(**{"input": str(source), "model": str(model), **asked, **changes})


def read_output(folder: Path) -> list[dict]:
    """All rows of an output, by their sources and ranks; a shard that is not whole cannot be read."""
    rows = [row for file in sorted((folder / "data").iterdir()) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=lambda row: (int(row["source_id"].rpartition(":")[2]), row["rank"] or 0))


def start(work: Callable[[], object], output: Path, limit: float = math.inf) -> int:
    """Start work in a process that leads a group of its own, as a shell starts a command.

    It waits where there are as many shards as the limit, so that it is not done before it is killed.
    """
    process = os.fork()
    if process:
        return process
    publish = steps.publish

    def publish_and_wait(*paths: Path) -> None:
        publish(*paths)
        while count_shards(output) >= limit:
            time.sleep(0.01)

    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
        steps.publish = publish_and_wait
        torch.set_num_threads(1)
        work()
        os._exit(0)
    except BaseException as error:
        print(json.dumps(repr(error)), flush=True)
    finally:
        os._exit(1)


def kill_and_restart(
    work: Callable[[], object],
    output: Path,
    kills: int,
    whole_group: bool = True,
    number: int = signal.SIGKILL,
    seed: int = 0,
) -> int:
    """Kill work at random moments, as often as asked, and then leave it alone.

    Args:
        work: What can be started again.
        output: Where it writes its shards. A kill comes after up to two of them, and a part of a second.
        kills: How often it is killed while it runs.
        whole_group: Whether its processes are killed with it, or have to notice.
        number: Of the signal.
        seed: Of the moments.

    Returns:
        How many shards there were as it was left alone.
    """
    draw = random.Random(seed)
    for _ in range(kills):
        wanted = count_shards(output) + draw.randint(0, 2)
        process = start(work, output, wanted + 1)
        while count_shards(output) < wanted:
            assert os.waitpid(process, os.WNOHANG) == (0, 0), "it has failed"
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.3))
        (os.killpg if whole_group else os.kill)(process, number)
        os.waitpid(process, 0)
        end = time.monotonic() + 60
        while running := find_running(process):
            assert time.monotonic() < end, f"{running} outlive the process that they work for"
            time.sleep(0.01)
    done = count_shards(output)
    assert os.waitpid(start(work, output), 0)[1] == 0
    return done


def count_shards(output: Path) -> int:
    return len(list((output / "data").glob("*.parquet")))


def find_running(group: int) -> list[str]:
    """The processes of a group, but for those that have ended and that nobody has asked about."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
            found += [stat.parent.name] if int(its_group) == group and state != "Z" else []
    return found


def run(asked: Augmentation, output: Path, workers: int = 1) -> object:
    """Run in this process and in forks of it, which need not import anything."""
    return run_augmentation(asked, str(output), workers=workers, executor_options={"start_method": "fork"})
