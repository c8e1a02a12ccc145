from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from .inputs import check_texts

__all__ = ["TEXT_FEATURES", "TextMetric"]

TEXT_FEATURES = Features({"predictions": Value("string"), "references": List(Value("string"))})


class TextMetric(evaluate.Metric, ABC):
    """An `evaluate` metric over texts with one or several references for each, checked as they are added.

    It is abstract so that `evaluate.load` passes over it and takes the subclass, which defines `_info` (with
    `TEXT_FEATURES`) and `_compute`.
    """

    def add_batch(
        self, *, predictions: Sequence[str], references: Sequence[str | Sequence[str]], **kwargs: Any
    ) -> None:
        """Add predictions, each with a text or a list of texts as its references."""
        predictions, references = check_texts(predictions, references)
        super().add_batch(predictions=predictions, references=references, **kwargs)

    def add(self, *, prediction: str, reference: str | Sequence[str], **kwargs: Any) -> None:
        """Add one prediction with a text or a list of texts as its references."""
        self.add_batch(predictions=[prediction], references=[reference], **kwargs)

    @abstractmethod
    def _compute(self, *, predictions: list[str], references: list[list[str]], **kwargs: Any) -> dict[str, Any]: ...
