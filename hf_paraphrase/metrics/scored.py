from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from . import list_metrics

__all__ = ["LOWERCASE", "Scored", "scored_metrics"]

# A score heeds no case unless it is asked to. No paper says what theirs do, but the outputs that they print are lower
# case (Prakash et al. 2016, Table 5; Kazemnejad et al. 2020, Table 6), as are those of our models of words; METEOR,
# TER and rouge-score ignore case by themselves.
LOWERCASE = {"lowercase": True}


@dataclass(frozen=True)
class Scored:
    """A metric's declaration, `SCORED` in the `__init__.py` of its folder, for `score` and evaluations.

    Its function then returns `Scores`. The declaration is separate, so that help texts can list
    metrics without importing their dependencies.
    """

    names: tuple[str, ...]  # names of the scores in the table
    # Inputs besides the predictions, in the order of its function: fields of `ScoredTexts`.
    inputs: tuple[str, ...] = ("references",)
    # What its function is called with unless other options are given.
    options: Mapping[str, Any] = field(default_factory=dict)


@cache
def scored_metrics() -> dict[str, Scored]:
    """The metrics of `score`, in alphabetical order, with their declarations."""
    declared = {name: getattr(import_module(f".{name}", __package__), "SCORED", None) for name in list_metrics()}
    return {name: scored for name, scored in declared.items() if scored is not None}
