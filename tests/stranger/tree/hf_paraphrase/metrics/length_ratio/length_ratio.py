from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.inputs import check_lengths, check_text_list
from hf_paraphrase.metrics.length_ratio.scoring import length_ratio
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["LengthRatio"]

_INPUTS = """
Args:
    predictions: texts
    sources: the text that each of them paraphrases
Returns:
    score, signature
Example:
    >>> load_metric("length_ratio").compute(predictions=["a b"], sources=["a b c d"])["score"]
    0.5
"""


class LengthRatio(CheckedMetric):
    """Words of paraphrases for each word of their sources."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="How many words paraphrases have for each word of their sources.",
            citation="",
            inputs_description=_INPUTS,
            features=Features({"predictions": Value("string"), "sources": Value("string")}),
        )

    @staticmethod
    def _check(*, predictions: Any, sources: Any) -> dict[str, list]:
        predictions, sources = check_text_list("predictions", predictions), check_text_list("sources", sources)
        check_lengths(predictions=predictions, sources=sources)
        return {"predictions": predictions, "sources": sources}

    def _compute(self, *, predictions: list, sources: list) -> dict[str, Any]:
        return length_ratio(predictions, sources)
