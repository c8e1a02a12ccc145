from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.inputs import check_text_list
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["DistinctN"]

_DESCRIPTION = """
Distinct-n: the number of different n-grams of all texts divided by the number of their n-grams. Higher is more
diverse.
"""

_INPUTS = """
Args:
    predictions: texts
    max_order, tokenize, lowercase: see `hf_paraphrase.metrics.distinct_n.scoring.distinct_n`
Returns:
    distinct_1 to distinct_N, signature
Example:
    >>> load_metric("distinct_n").compute(predictions=["a b", "a b"])["distinct_1"]
    0.5
"""

_CITATION = """
@inproceedings{li-etal-2016-diversity,
  title = {A diversity-promoting objective function for neural conversation models},
  author = {Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and Dolan, Bill}, booktitle = {NAACL},
  year = {2016}}
"""

_FEATURES = Features({"predictions": Value("string")})


class DistinctN(CheckedMetric):
    """Share of different n-grams."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://aclanthology.org/N16-1014"],
        )

    @staticmethod
    def _check(*, predictions: Any) -> dict[str, list]:
        predictions = check_text_list("predictions", predictions)
        return {"predictions": predictions}

    def _compute(self, *, predictions: list, **options: Any) -> dict[str, Any]:
        return distinct_n(predictions, **options)
