"""Metrics: one folder each, holding an `evaluate` module, the same thing as a plain function, and its card.

`load_metric("bleu")` gives the module; `from hf_paraphrase.metrics.bleu.scoring import bleu` gives the function,
without importing `evaluate`, which takes seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.files import use_writable_folders
from ..errors import InputError

if TYPE_CHECKING:
    from evaluate import EvaluationModule

__all__ = ["list_metrics", "load_metric"]

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
