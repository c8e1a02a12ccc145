"""What of a paper can be made again: its tables as systems to train, scores to take and claims to test.

`tables/` has a YAML file each, whose `fields` are those of all systems of its settings and whose claims are written as
`Claim` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..common.errors import InputError
from ..common.fields import read_yaml

FOLDER = Path(__file__).with_name("tables")
CLAIM = re.compile(r"(?P<better>.+) (?:>|at most (?P<margin>[\d.]+) behind) (?P<worse>.+) in (?P<metric>\w+)")


@dataclass(frozen=True)
class Trained:
    """The training run for a row of a table: a recipe with overrides."""

    recipe: str  # one that comes with the package
    # Overrides of the recipe's fields, as `--field value` on the command line.
    fields: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None  # the row whose training, at the same seed, this one continues; None to start fresh
    max_steps: int | None = None  # maximum number of steps, even if time remains; None for no such limit


@dataclass(frozen=True)
class Settings:
    """A size at which a table is made: the small one of two CPU cores, or the paper's."""

    systems: Mapping[str, Trained]  # the training run of each row, by name
    # Processor minutes of each training, validations included; None for the steps of the recipes.
    minutes: float | None = None
    seeds: Sequence[int] = (1,)  # of the trainings; each system has as many

    def with_equal_passes(self, num_train_epochs: float) -> Settings:
        """The same, but that each system reads the data so often, however long that takes."""
        fields = {"num_train_epochs": num_train_epochs, "max_steps": -1}
        systems = {
            name: replace(one, fields={**one.fields, **fields}, max_steps=None) for name, one in self.systems.items()
        }
        return replace(self, systems=systems, minutes=None)


@dataclass(frozen=True)
class Claim:
    """An ordering that the paper asserts."""

    better: str  # a row of the table
    worse: str  # another
    metric: str  # by which score
    # Margin by which `better` may be worse: 0 for an ordering, more if the paper calls two systems equal.
    margin: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Read what `str` gives."""
        found = CLAIM.fullmatch(text)
        if found is None:
            raise InputError(f"a claim is `A > B in SCORE` or `A at most MARGIN behind B in SCORE`, not {text!r}")
        return cls(found["better"], found["worse"], found["metric"], float(found["margin"] or 0))

    def __str__(self) -> str:
        relation = f"at most {self.margin:g} behind" if self.margin else ">"
        return f"{self.better} {relation} {self.worse} in {self.metric}"


@dataclass(frozen=True)
class Measurement:
    """One way of scoring the trained systems."""

    name: str = ""  # what distinguishes it from the table's other corpora; empty if it is the only one
    claims: tuple[Claim, ...] = ()  # that its scores test
    options: Mapping[str, Any] = field(default_factory=dict)  # arguments of the evaluator of the systems' task
    # Further ones of single rows, by their names.
    row_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evaluator: str | None = None  # a name out of `reproduction.tables.READERS`; None for the default of the task


@dataclass(frozen=True)
class Table:
    """A table, or a figure, of a paper."""

    name: str  # by which `hf-paraphrase reproduce` knows it
    title: str  # the paper's, with corpus
    settings: Mapping[str, Settings]  # by name: `small`, `paper`
    measurements: tuple[Measurement, ...] = (Measurement(),)  # how the systems are scored
    max_samples: int | None = None  # maximum number of test rows, drawn with seed 1; None for all
    # Text metrics, as named by `hf-paraphrase score`; other tasks have their own.
    metrics: Sequence[str] = ("bleu", "rouge", "meteor", "pinc")
    cards: str = ""  # the folder of `model_cards/` where the table goes

    def choose(self, name: str) -> Settings:
        """The settings of a name; raises InputError for another one."""
        if name not in self.settings:
            raise InputError(f"--settings {name}: {self.name} has: {', '.join(self.settings)}")
        return self.settings[name]


def list_tables() -> list[str]:
    """The names of all tables."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def load_table(name: str) -> Table:
    """A table by its name."""
    values = read_yaml(FOLDER / f"{name}.yaml")
    settings = {size: _read_settings(**one) for size, one in values.pop("settings").items()}
    measurements = [one | {"claims": tuple(map(Claim.parse, one["claims"]))} for one in values.pop("measurements")]
    return Table(name, settings=settings, measurements=tuple(Measurement(**one) for one in measurements), **values)


def _read_settings(systems: Mapping[str, Any], fields: Mapping[str, Any] | None = None, **others: Any) -> Settings:
    trained = {}
    for name, one in systems.items():
        one = {"recipe": one} if isinstance(one, str) else one
        trained[name] = Trained(**{**one, "fields": {**(fields or {}), **one.get("fields", {})}})
    return Settings(trained, **others)
