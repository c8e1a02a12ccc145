"""Metrics: one folder each, holding an `evaluate` module, the same thing as a plain function, and its card.

`load_metric("bleu")` gives the module; `from hf_paraphrase.metrics.bleu.scoring import bleu` gives the function,
without importing `evaluate`, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..common.files import use_writable_folders

if TYPE_CHECKING:
    from evaluate import EvaluationModule

_FOLDER = Path(__file__).parent


def list_metrics() -> list[str]:
    """Names that `load_metric` takes, in alphabetical order."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/*.py") if path.stem == path.parent.name)


def load_metric(name: str, **kwargs: Any) -> EvaluationModule:
    """Load a metric as an `evaluate` module, from this package and without the network.

    Args:
        name: One of `list_metrics()`.
        kwargs: Handed to `evaluate.load`, for instance `keep_in_memory`, `experiment_id`, `num_process`, `process_id`.

    Returns:
        A module with `compute`, `add` and `add_batch`.

    Raises:
        InputError: Unknown metric.
    """
    if name not in list_metrics():
        raise InputError(f"unknown metric {name!r}; available: {', '.join(list_metrics())}")
    import evaluate

    use_writable_folders(evaluate.config, "HF_EVALUATE_CACHE", "HF_METRICS_CACHE", "HF_MODULES_CACHE")
    return evaluate.load(str(_FOLDER / name / f"{name}.py"), **kwargs)


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
    declared = {name: getattr(import_module(f".{name}", __name__), "SCORED", None) for name in list_metrics()}
    return {name: scored for name, scored in declared.items() if scored is not None}
