from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from tqdm.auto import tqdm

from ..common.errors import InputError
from ..common.files import read_lines, write_text
from ..common.pictures import add_legend, curve_style, in_style, new_figure, save_figure, tick_plainly
from ..metrics.perplexity import scoring
from .recipe import Recipe

LOG_FILE = "log_history.jsonl"


def perplexity(loss: float) -> float:
    """The metric, of a mean loss; bounded so that it stays a number in JSON."""
    return scoring.perplexity([min(loss, 100.0)], [1])["perplexity"]


def check_trackers(names: list[str]) -> None:
    """Refuse trackers that are not installed, which Accelerate would leave out without a word."""
    available = sorted(str(tracker) for tracker in get_available_trackers())
    for name in names:
        if name not in available:
            raise InputError(
                f"`report_to`: the tracker {name} is not installed; there are: {', '.join(available) or 'none'}"
            )


class Reporter:
    """Shows and keeps what happens: a progress bar, `log_history.jsonl` and the trackers, on the main process.

    New entries are added to `history`, with which a resumed run begins.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        recipe: Recipe,
        directory: Path,
        history: list[dict[str, Any]],
        step: int,
        total_steps: int,
    ):
        self.accelerator, self.history = accelerator, history
        self.file = directory / LOG_FILE
        if accelerator.is_main_process:
            # A killed run may have logged steps after its last checkpoint; they will be taken again.
            write_text(self.file, "".join(json.dumps(entry) + "\n" for entry in history))
        accelerator.init_trackers(
            recipe.name,
            {
                name: value if isinstance(value, bool | int | float | str) else json.dumps(value)
                for part in (recipe.model_config, vars(recipe.training))
                for name, value in part.items()
            },
            # It keeps all runs in one place, by name; a resumed run continues its own.
            {"trackio": {"name": directory.name, "resume": "allow" if history else "never", "embed": False}},
        )
        self.bar = tqdm(
            desc=recipe.name,
            total=total_steps,
            initial=step,
            unit="step",
            disable=recipe.training.disable_tqdm or not accelerator.is_main_process,
            mininterval=0.2 if sys.stderr.isatty() else 30,
        )

    def advance(self, loss: float, learning_rate: float, tokens_per_second: float) -> None:
        """Move the progress bar by one step."""
        postfix = f"loss {loss:.3f}, ppl {perplexity(loss):.1f}, lr {learning_rate:.2g}, {tokens_per_second:.0f} tok/s"
        self.bar.set_postfix_str(postfix, refresh=False)
        self.bar.update()

    def log(self, entry: dict[str, Any]) -> None:
        """Add an entry to the history, its file and the trackers."""
        self.history.append(entry)
        if self.accelerator.is_main_process:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        self.accelerator.log({name: value for name, value in entry.items() if name != "step"}, step=entry["step"])

    def say(self, text: str) -> None:
        """Print a line above the progress bar."""
        if not self.bar.disable:
            self.bar.write(text, file=sys.stderr)

    def close(self) -> None:
        self.bar.close()
        self.accelerator.end_training()


@in_style
def plot_learning_curves(
    runs: Mapping[str, str | os.PathLike | dict[str, Any]], path: str | os.PathLike, fine_tuning: bool = False
) -> None:
    """Draw train and validation perplexity over the epochs, as Figure 4 of Prakash et al. 2016 does.

    Where one of the corpora was streamed, so that only whole epochs are known, it is over the steps.

    Args:
        runs: Name of each curve, and the run's output folder (the run may still go on) or its training summary.
        path: The picture to write.
        fine_tuning: Draw the nits per character of a language model on the target set and, where it was measured, on
            the general one (Traynor 2018, figures 3.3 and 3.4).

    Raises:
        FileNotFoundError: If a folder holds no `log_history.jsonl`.
        InputError: If a run never validated.
    """
    solid, dashed = ("eval_loss", "eval_general_loss") if fine_tuning else ("eval_perplexity", "train_perplexity")
    figure = new_figure()
    axes = figure.subplots()
    lines = []
    evaluations_by_run = {name: _find_evaluations(name, run) for name, run in runs.items()}
    has_epochs = (len({one["epoch"] for one in found}) == len(found) for found in evaluations_by_run.values())
    axis = "epoch" if all(has_epochs) else "step"
    for number, (name, evaluations) in enumerate(evaluations_by_run.items()):
        times, style = [entry[axis] for entry in evaluations], curve_style(number)
        lines += axes.plot(times, [entry[solid] for entry in evaluations], **style, label=name)
        if dashed in evaluations[0]:
            others = [entry[dashed] for entry in evaluations]
            axes.plot(times, others, **style | {"linestyle": "--", "marker": ""})
    if fine_tuning:
        title = "solid: target set, dashed: general set" if len(axes.lines) > len(lines) else ""
        axes.set(xlabel=axis, ylabel="nits per character", title=title)
        axes.grid(True)
    else:
        axes.set(xlabel=axis, ylabel="perplexity", yscale="log", title="solid: validation, dashed: train")
        tick_plainly(axes.yaxis)
        axes.grid(True, which="both")
    add_legend(axes, lines)
    save_figure(figure, path)


def _find_evaluations(name: str, run: str | os.PathLike | dict[str, Any]) -> list[dict[str, Any]]:
    """Every validation of a run, given its output folder or its training summary."""
    if isinstance(run, dict):
        evaluations = run["evaluations"]
    else:
        file = Path(run) / LOG_FILE
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing; is {run} the output folder of a training run?")
        evaluations = [entry for entry in read_lines(file) if "eval_loss" in entry]
    if not evaluations:
        raise InputError(f"run {name} has no validation to draw")
    return evaluations
