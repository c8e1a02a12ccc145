from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import evaluate
from datasets import Features, List, Value

from .inputs import check_texts

__all__ = ["TEXT_FEATURES", "CheckedMetric", "TextMetric"]

# What metrics of this package score, beside predictions and references.
INPUTS = ("sources", "losses", "characters", "tokens", "items", "raters", "choices")
TEXT_FEATURES = Features({"predictions": Value("string"), "references": List(Value("string"))})


class CheckedMetric(evaluate.Metric, ABC):
    """An `evaluate` metric whose inputs are checked as they are added.

    It is abstract so that `evaluate.load` passes over it and takes the subclass, which defines `_info`, `_check` and
    `_compute`.
    """

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score the inputs and what was added before.

        Inputs of other metrics, which `evaluate.combine` passes to all, are left out.
        """
        own = self._feature_names()
        kwargs = {name: value for name, value in kwargs.items() if name in own or name not in INPUTS}
        given = {"predictions": predictions, "references": references}
        given = {name: value for name, value in given.items() if name in own and value is not None}
        return super().compute(**given, **kwargs)

    def add_batch(self, **inputs: Any) -> None:
        """Add rows: one list for each feature of the metric."""
        super().add_batch(**self._check(**inputs))

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:
        """Add one row: `prediction` and `reference`, and other features by their own names."""
        row = {"predictions": prediction, "references": reference, **inputs}
        self.add_batch(**{name: [row[name]] for name in self._feature_names()})

    @staticmethod
    @abstractmethod
    def _check(**inputs: Any) -> dict[str, list]:
        """The inputs in the form of the features; raises an InputError that names what is wrong."""

    @abstractmethod
    def _compute(self, **inputs_and_options: Any) -> dict[str, Any]: ...


class TextMetric(CheckedMetric):
    """A metric over texts with one or several references for each; a subclass takes `TEXT_FEATURES`."""

    @staticmethod
    def _check(*, predictions: Any, references: Any) -> dict[str, list]:
        predictions, references = check_texts(predictions, references)
        return {"predictions": predictions, "references": references}
