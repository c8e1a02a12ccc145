from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.files import read_lines
from ..errors import InputError
from ..pictures import add_legend, curve_style, in_style, new_figure, save_figure, tick_plainly

__all__ = ["evaluations_of", "plot_learning_curves"]


@in_style
def plot_learning_curves(runs: Mapping[str, str | os.PathLike | dict[str, Any]], path: str | os.PathLike) -> None:
    """Draw train and validation perplexity over the epochs, as Figure 4 of Prakash et al. 2016 does.

    Where one of the corpora was streamed, so that only whole epochs are known, it is over the steps.

    Args:
        runs: Name of each curve, and the run's output folder (the run may still go on) or its training summary.
        path: The PNG file to write.

    Raises:
        FileNotFoundError: If a folder holds no `log_history.jsonl`.
        InputError: If a run never validated.
    """
    figure = new_figure()
    axes = figure.subplots()
    lines = []
    evaluations_by_run = {name: evaluations_of(name, run) for name, run in runs.items()}
    axis = "epoch" if all(map(_has_epochs, evaluations_by_run.values())) else "step"
    for number, (name, evaluations) in enumerate(evaluations_by_run.items()):
        times, train, validation = (
            [entry[column] for entry in evaluations] for column in (axis, "train_perplexity", "eval_perplexity")
        )
        style = curve_style(number)
        lines += axes.plot(times, validation, **style, label=name)
        axes.plot(times, train, **style | {"linestyle": "--", "marker": ""})
    axes.set(xlabel=axis, ylabel="perplexity", yscale="log", title="solid: validation, dashed: train")
    tick_plainly(axes.yaxis)
    axes.grid(True, which="both")
    add_legend(axes, lines)
    save_figure(figure, path)


def _has_epochs(evaluations: list[dict[str, Any]]) -> bool:
    return len({entry["epoch"] for entry in evaluations}) == len(evaluations)


def evaluations_of(name: str, run: str | os.PathLike | dict[str, Any]) -> list[dict[str, Any]]:
    """Every validation of a run, given its output folder or its training summary."""
    evaluations = run["evaluations"] if isinstance(run, dict) else _read_evaluations(Path(run))
    if not evaluations:
        raise InputError(f"run {name} has no validation to draw")
    return evaluations


def _read_evaluations(directory: Path) -> list[dict[str, Any]]:
    file = directory / "log_history.jsonl"
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; is {directory} the output folder of a training run?")
    entries = read_lines(file)
    return [entry for entry in entries if "eval_loss" in entry]
