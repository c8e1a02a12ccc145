from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_paraphrase.metrics.ranking.scoring import check_rankings, ranking
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Ranking"]

_DESCRIPTION = """
P@1, mean reciprocal rank and mean average precision of candidates ranked by score.
"""

_INPUTS = """
Args:
    predictions: for each query the scores of its candidates
    references: for each query the position of its right candidate, or 1 or 0 for each candidate
Returns:
    precision_at_1, mrr, map, queries, skipped
Example:
    >>> load_metric("ranking").compute(predictions=[[0.2, 0.9, 0.5]], references=[[1, 0, 0]])["mrr"]
    0.3333333333333333
"""

_CITATION = """
@book{manning-etal-2008, title = {Introduction to information retrieval}, author = {Manning, Christopher and Raghavan,
  Prabhakar and Schütze, Hinrich}, publisher = {Cambridge University Press}, year = {2008}}
"""

_FEATURES = Features({"predictions": List(Value("float64")), "references": List(Value("int64"))})


class Ranking(CheckedMetric):
    """P@1, MRR and MAP."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://nlp.stanford.edu/IR-book/"],
        )

    @staticmethod
    def _check(*, predictions: Any, references: Any) -> dict[str, list]:
        predictions, references = check_rankings(predictions, references)
        return {"predictions": predictions, "references": references}

    def _compute(self, *, predictions: list, references: list, **options: Any) -> dict[str, Any]:
        return ranking(predictions, references, **options)
