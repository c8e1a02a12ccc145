"""Trainings on a disk that is full: a clear error, and when there is room again they end as one that always had it."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hf_paraphrase.training.loop import train
from tests.training.tiny_runs import assert_equal, last_weights, make_pairs, make_recipe

from .trials import Trials

ROOMY = "64m"


def fill_disk(count: int, seed: int = 0) -> Trials:
    """Train on `count` small disks, of random sizes."""
    trials, draw = Trials("trainings on a full disk"), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="disk-") as scratch:
        recipe, pairs = make_recipe(save_steps=2), make_pairs()
        train(recipe, Path(scratch) / "whole", dataset=pairs)
        weights = last_weights(Path(scratch) / "whole")
        for _ in range(count):
            size = 4 * draw.randint(1, 60)
            try:
                with small_disk(Path(scratch) / "small", size) as disk, trials.trial(f"{size} KiB"):
                    folder = disk / "run"
                    try:
                        train(recipe, folder, dataset=pairs)
                    except OSError as error:
                        assert error.errno is None or "space" in str(error), error
                    mount("remount,size=" + ROOMY, disk)
                    started = any(folder.glob("checkpoints/last-*"))
                    train(recipe, folder, dataset=pairs, resume=started, overwrite=not started)
                    assert_equal(last_weights(folder), weights)
            except PermissionError as error:
                trials.skipped = f"no right to mount: {error}"
                break
    return trials


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a disk of so many KiB in memory.

    Raises:
        PermissionError: This is not allowed here.
    """
    folder.mkdir(exist_ok=True)
    mount(f"size={size}k", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def mount(options: str, folder: Path) -> None:
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise PermissionError("there is no `mount`") from error
    if done.returncode:
        raise PermissionError(done.stderr.strip())
