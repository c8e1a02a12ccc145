"""What of a paper can be made again: its tables as systems to train, scores to take and claims to test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError

__all__ = ["Claim", "Measurement", "Settings", "Table", "Trained"]


@dataclass(frozen=True)
class Trained:
    """The training run for a row of a table: a recipe with overrides.

    Args:
        recipe: One that comes with the package.
        fields: Overrides of the recipe's fields, as `--field value` on the command line.
        start: The row whose training, at the same seed, this one continues; None to start fresh.
        max_steps: Maximum number of steps, even if time remains; None for no such limit.
    """

    recipe: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None
    max_steps: int | None = None


@dataclass(frozen=True)
class Settings:
    """A size at which a table is made: the small one of two CPU cores, or the paper's.

    Args:
        systems: The training run of each row, by name.
        minutes: Processor minutes of each training, validations included; None for the steps of the recipes.
        seeds: Of the trainings; each system has as many.
    """

    systems: Mapping[str, Trained]
    minutes: float | None = None
    seeds: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Claim:
    """An ordering that the paper asserts.

    Args:
        better: A row of the table.
        worse: Another.
        metric: By which score.
        margin: Margin by which `better` may be worse: 0 for an ordering, more if the paper calls two systems equal.
    """

    better: str
    worse: str
    metric: str
    margin: float = 0.0

    def __str__(self) -> str:
        if self.margin:
            return f"{self.better} at most {self.margin:g} behind {self.worse} in {self.metric}"
        return f"{self.better} > {self.worse} in {self.metric}"


@dataclass(frozen=True)
class Measurement:
    """One way of scoring the trained systems.

    Args:
        name: What distinguishes it from the table's other corpora; empty if it is the only one.
        claims: That its scores test.
        options: Arguments of the evaluator of the systems' task.
        row_options: Further ones of single rows, by their names.
        evaluator: A name out of `reproduction.tables.EVALUATORS`; None for the default of the task.
    """

    name: str = ""
    claims: tuple[Claim, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    row_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evaluator: str | None = None


@dataclass(frozen=True)
class Table:
    """A table, or a figure, of a paper.

    Args:
        name: By which `hf-paraphrase reproduce` knows it.
        title: The paper's, with corpus.
        settings: By name: `small`, `paper`.
        measurements: How the systems are scored.
        max_samples: Maximum number of test rows, drawn with seed 1; None for all.
        metrics: Text metrics, as named by `hf-paraphrase score`; other tasks have their own.
        cards: The folder of `model_cards/` where the table goes.
    """

    name: str
    title: str
    settings: Mapping[str, Settings]
    measurements: tuple[Measurement, ...] = (Measurement(),)
    max_samples: int | None = None
    metrics: tuple[str, ...] = ("bleu", "rouge", "meteor", "pinc")
    cards: str = ""

    def choose(self, name: str) -> Settings:
        """The settings of a name.

        Raises:
            InputError: The table does not contain it.
        """
        if name not in self.settings:
            raise InputError(f"--settings {name}: {self.name} has: {', '.join(self.settings)}")
        return self.settings[name]
