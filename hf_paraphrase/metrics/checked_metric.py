from __future__ import annotations

import inspect
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
from datasets import Features, List, Value

from ..common.docstrings import read_docstring
from .inputs import check_texts

# What a column of inputs holds, by its annotation in the plain function.
_FEATURES = {
    "Iterable[str]": Value("string"),
    "Iterable[str | Sequence[str]]": List(Value("string")),
    "Iterable[Sequence[str]]": List(Value("string")),
    "Iterable[float]": Value("float64"),
    "Iterable[int]": Value("int64"),
    "Iterable[Sequence[float]]": List(Value("float64")),
    "Iterable[int | Sequence[int]]": List(Value("int64")),
}

# Inputs of this package's metrics besides predictions and references.
INPUTS = ("sources", "losses", "characters", "tokens", "items", "raters", "choices")


class CheckedMetric(evaluate.Metric, ABC):
    """An `evaluate` module made from a plain function, whose inputs are checked as they are added.

    The function's positional arguments are the inputs, its keyword arguments the options of `compute`, its docstring
    the metric's card: `TITLE: summary.`, a description with the addresses of the code behind it, and the sections
    `Args`, `Returns`, `Examples`, `Limits` and `Source`. A subclass sets `function`, and `_check` where its inputs are
    not texts with references. `NAME.bib` beside it has the BibTeX, whose `url`s are the references of the module.

    It is abstract so that `evaluate.load` passes over it and takes the subclass.
    """

    @staticmethod
    @abstractmethod
    def function(*inputs: Any, **options: Any) -> dict[str, Any]:
        """The plain function."""

    @staticmethod
    def _check(*inputs: Any, **named: Any) -> tuple[list, ...]:
        """The inputs in the format of the features, here texts and their references; InputError names the problem."""
        return check_texts(*inputs, **named)

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
        super().add_batch(**dict(zip(self._feature_names(), self._check(**inputs), strict=True)))

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:
        """Add one row: `prediction` and `reference`, and other features by their own names."""
        row = {"predictions": prediction, "references": reference, **inputs}
        self.add_batch(**{name: [row[name]] for name in self._feature_names()})

    def _info(self) -> evaluate.MetricInfo:
        card, folder = read_docstring(self.function), Path(inspect.getfile(self.function)).parent
        citation = (folder / f"{folder.name}.bib").read_text(encoding="utf-8")
        usage = (
            f"{name}:\n{textwrap.indent(card.sections[name], '    ')}\n" for name in ("Args", "Returns", "Examples")
        )
        return evaluate.MetricInfo(
            description=f"{card.summary}\n\n{card.details}".strip(),
            citation=citation.strip(),
            inputs_description="\n" + "".join(usage),
            features=read_features(self.function),
            codebase_urls=re.findall(r"https://[^\s)]+", card.details),
            reference_urls=re.findall(r"url = {(.+?)}", citation),
        )

    def _compute(self, **inputs_and_options: Any) -> dict[str, Any]:
        return dict(self.function(**inputs_and_options))


def read_features(function: Callable) -> Features:
    """The columns that a metric takes: the positional arguments of its plain function, by their annotations."""
    features = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            if parameter.annotation not in _FEATURES:
                known = ", ".join(_FEATURES)
                raise TypeError(f"{function.__name__}: annotate {name} as one of {known}, not {parameter.annotation}")
            features[name] = _FEATURES[parameter.annotation]
    return Features(features)
