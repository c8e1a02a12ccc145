from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.classification.scoring import classification
from hf_paraphrase.metrics.inputs import check_lengths, check_numbers
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Classification"]

_DESCRIPTION = """
Accuracy of labels; of scores for two classes also F1, and the largest F1 with the threshold that reaches it.
"""

_INPUTS = """
Args:
    predictions: labels, or with threshold scores of class 1
    references: labels
    threshold: from which score on class 1 is meant
Returns:
    accuracy; of two classes also precision, recall, f1; with threshold also max_f1, max_f1_threshold
Example:
    >>> load_metric("classification").compute(predictions=[0, 2, 1], references=[0, 2, 2])["accuracy"]
    0.6666666666666666
"""

_FEATURES = Features({"predictions": Value("float64"), "references": Value("int64")})


class Classification(CheckedMetric):
    """Accuracy, F1 and the largest F1."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=_FEATURES,
        )

    @staticmethod
    def _check(*, predictions: Any, references: Any) -> dict[str, list]:
        predictions, references = check_numbers("predictions", predictions), check_numbers("references", references)
        check_lengths(predictions=predictions, references=references)
        return {"predictions": predictions, "references": references}

    def _compute(self, *, predictions: list, references: list, **options: Any) -> dict[str, Any]:
        return classification(predictions, references, **options)
