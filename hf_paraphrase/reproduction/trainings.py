"""The trainings of a table: one process each, equal in processor time, resumed where they were stopped."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..common.errors import InputError
from ..common.files import read_json_object
from ..common.progress import is_watched
from ..papers.table import Settings
from ..training.recipe import Recipe, load_recipe
from ..training.run import LAUNCHED

SUMMARY_FILE = "training_summary.json"
# Steps by which the speed of a training is measured; the first ones, which also allocate memory, weigh little then.
PROBED_STEPS = 60


@dataclass(frozen=True)
class Run:
    """One training of one system."""

    system: str  # the row of the table
    seed: int  # of the training
    recipe: Recipe  # the training run, at that seed
    folder: Path  # where the run goes
    start: Path | None = None  # the folder of the run that it continues; None to start fresh
    max_steps: int | None = None  # how many of its steps are of use, if its budget has room for more

    @property
    def recipe_folder(self) -> Path:
        """Has the recipe with the steps that fit into the budget."""
        return self.folder.with_name(f"{self.folder.name}-recipe")

    @property
    def probe_folder(self) -> Path:
        """Has the run of a few steps that showed what one costs."""
        return self.folder.with_name(f"{self.folder.name}-probe")

    @property
    def summary(self) -> dict[str, Any] | None:
        """The training's own summary; None before it has ended."""
        return _read_summary(self.folder)

    @property
    def final_summary(self) -> dict[str, Any]:
        """The same of a training that has ended; raises InputError for another."""
        summary = self.summary
        if summary is None:
            raise InputError(f"{self.folder} has no {SUMMARY_FILE}: its training has not ended")
        return summary

    @property
    def probe_summary(self) -> dict[str, Any] | None:
        """The same of the probe."""
        return _read_summary(self.probe_folder)


def list_runs(settings: Settings, output_dir: Path, seeds: Iterable[int]) -> list[Run]:
    """The runs of all systems, in the order of the table; a folder for each, `SYSTEM/seed-N`."""
    runs = []
    for seed in seeds:
        for name, trained in settings.systems.items():
            folder, start = (
                None if system is None else output_dir / slug(system) / f"seed-{seed}"
                for system in (name, trained.start)
            )
            fields = {**trained.fields, "seed": seed, "disable_tqdm": True}
            fields |= {"pretrained": str(start)} if start else {}
            recipe = load_recipe(trained.recipe).override(fields)
            runs.append(Run(name, seed, recipe, folder, start, trained.max_steps))
    return runs


def train_all(
    runs: list[Run],
    minutes: float | None,
    data_dir: Path | None,
    jobs: int,
    device: str | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Train unfinished runs, resuming interrupted ones.

    The time that the steps of a run take is measured first, by a few of them, so that its schedule ends with its
    budget: a run that is stopped by the clock would end at a high learning rate.

    Args:
        runs: The runs.
        minutes: Processor minutes of each; None for the steps of the recipes.
        data_dir: Folder with the corpus's published files.
        jobs: How many run at a time, a core each.
        device: "cpu" to ignore GPUs; otherwise one is used if available.
        report: Receives a line when a training begins and when it ends.

    Raises:
        InputError: A training failed; the message has the end of its output and the path of the rest. Or a folder has
            a run of another recipe or budget.
    """
    for run in runs:
        _check_begun(run, minutes)
    missing = [run for run in runs if run.summary is None]
    with (
        ThreadPoolExecutor(jobs) as pool,
        tqdm(total=len(missing), desc="training", unit="run", disable=not is_watched()) as bar,
    ):
        while missing:
            later = [run for run in missing if run.start in {other.folder for other in missing}]
            wave = [run for run in missing if run not in later]
            # A failing run shows in its first steps, before hours are spent on the others.
            _call_all(pool, [partial(_prepare, run, minutes, data_dir, device) for run in wave])
            trainings = [partial(_train, run, data_dir, device, report) for run in wave]
            _call_all(pool, trainings, bar)
            missing = later


def _call_all(pool: ThreadPoolExecutor, calls: list[Callable[[], None]], bar: tqdm | None = None) -> None:
    waiting = [pool.submit(call) for call in calls]
    try:
        for done in as_completed(waiting):
            done.result()
            if bar is not None:
                bar.update()
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise


def _train(run: Run, data_dir: Path | None, device: str | None, report: Callable[[str], None]) -> None:
    report(f"{run.system}, seed {run.seed}: training in {run.folder}")
    _call_train(run.recipe_folder, run.folder, data_dir, device)
    report(f"{run.system}, seed {run.seed}: trained, {run.final_summary['steps']:,} steps")


def _check_begun(run: Run, minutes: float | None) -> None:
    """Refuse a folder with a run of another recipe or budget, before hours are spent on the others."""
    if not (run.summary or _has_begun(run.folder)):
        return
    begun, probe = load_recipe(run.recipe_folder), run.probe_summary
    steps = begun.training.max_steps
    wanted = run.recipe.training.max_steps if minutes is None else probe and _steps_within(run, probe, minutes)
    recipes = [(one.model_config, one.training) for one in (begun, run.recipe.override({"max_steps": steps}))]
    if recipes[0] != recipes[1] or wanted not in (None, steps):
        raise InputError(
            f"{run.folder} has a run of another recipe or budget; remove it, or name another output folder"
        )


def _prepare(run: Run, minutes: float | None, data_dir: Path | None, device: str | None) -> None:
    """Write the recipe of a run that has not begun, with as many steps as fit into the budget."""
    if _has_begun(run.folder):
        return
    recipe = run.recipe
    if minutes is not None:
        probe = run.probe_summary or _probe(run, data_dir, device)
        recipe = recipe.override({"max_steps": _steps_within(run, probe, minutes)})
    recipe.save(run.recipe_folder)


def _has_begun(folder: Path) -> bool:
    return any(folder.glob("checkpoints/last-*"))


def _probe(run: Run, data_dir: Path | None, device: str | None) -> dict[str, Any]:
    """Train for a few steps, to see what one costs."""
    recipe = run.recipe.override({"max_steps": PROBED_STEPS, "eval_strategy": "steps", "eval_steps": PROBED_STEPS})
    recipe_folder = run.probe_folder.with_name(f"{run.probe_folder.name}-recipe")
    recipe.save(recipe_folder)
    _call_train(recipe_folder, run.probe_folder, data_dir, device)
    return read_json_object(run.probe_folder / SUMMARY_FILE)


def _steps_within(run: Run, probe: dict[str, Any], minutes: float) -> int:
    """The number of steps, including validations, that fit into a budget of processor minutes, up to a useful
    maximum."""
    step = probe["train_cpu_seconds"] / probe["steps"]
    validation = probe["cpu_seconds"] - probe["train_cpu_seconds"]
    interval = run.recipe.training.eval_steps or math.inf
    steps = max(1, int(60 * minutes / (step + validation / interval)))
    return min(steps, run.max_steps or steps)


def _call_train(recipe: Path, folder: Path, data_dir: Path | None, device: str | None) -> None:
    """Run `hf-paraphrase train` in a subprocess, which gets this process's signals too."""
    command = [sys.executable, "-m", "hf_paraphrase", "train", "--recipe", str(recipe), "--output-dir", str(folder)]
    command += ["--data-dir", str(data_dir)] if data_dir else []
    command += ["--resume"] if _has_begun(folder) else ["--overwrite"]
    log = folder.with_name(f"{folder.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        # A second thread that competes with another process burns processor time while waiting.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", LAUNCHED: "1"}
        environment |= {"ACCELERATE_USE_CPU": "true"} if device == "cpu" else {}
        code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    if code:
        said = log.read_text(encoding="utf-8").splitlines()
        raise InputError(f"the training of {folder} ended with {code}: {said[-1] if said else 'no word'}; see {log}")


def _read_summary(folder: Path) -> dict[str, Any] | None:
    file = folder / SUMMARY_FILE
    return read_json_object(file) if file.is_file() else None


def slug(name: str) -> str:
    """A name as that of a file: letters and digits, in lower case, with hyphens between them."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())
