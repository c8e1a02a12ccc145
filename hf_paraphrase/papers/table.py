"""What of a paper can be made again: its tables as systems to train, scores to take and claims to test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError

__all__ = ["Claim", "Measurement", "Settings", "Table", "Trained"]


@dataclass(frozen=True)
class Trained:
    """What is trained for a row of a table: a recipe, with some of its fields changed.

    Args:
        recipe: One that comes with the package.
        fields: Fields and values in place of the recipe's, as `--field value` on the command line.
        start: The row whose training, of the same seed, this one goes on from; None for one of its own.
        max_steps: It takes no more, however many would fit into the minutes; None for no such limit.
    """

    recipe: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None
    max_steps: int | None = None


@dataclass(frozen=True)
class Settings:
    """A size at which a table is made: the small one of two CPU cores, or the paper's.

    Args:
        systems: What is trained for each row, by the row's name.
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
        margin: How much worse `better` may be: 0 for an ordering, more where the paper calls two systems alike.
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
        name: What sets it apart from the table's others; empty where there is one.
        claims: That its scores test.
        options: Arguments of the evaluator of the systems' task.
        row_options: Further ones of single rows, by their names.
        evaluator: A name out of `reproduction.tables.EVALUATORS`; None for that of the systems' task.
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
        max_samples: At most so many rows of the test split, drawn by seed 1; None for all.
        metrics: Of texts, as `hf-paraphrase score` names them; other tasks have scores of their own.
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
            InputError: The table has none of it.
        """
        if name not in self.settings:
            raise InputError(f"--settings {name}: {self.name} has: {', '.join(self.settings)}")
        return self.settings[name]
