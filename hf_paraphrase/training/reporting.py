from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from tqdm.auto import tqdm

from ..common.files import write_text
from ..errors import InputError
from ..metrics.perplexity import scoring
from .recipe import Recipe

__all__ = ["Reporter", "check_trackers", "perplexity"]

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

    Args:
        accelerator: Its trackers are started here.
        recipe: Given to the trackers.
        directory: The run's output folder.
        history: Entries of the log that a resumed run begins with; new ones are added.
        step: Steps already taken.
        total_steps: Steps of the whole run.
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
