from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.inputs import check_lengths, check_text_list
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Pinc"]

_DESCRIPTION = """
PINC: the share of a paraphrase's n-grams, n from 1 to 4, that its source does not have. Higher is newer; it says
nothing about meaning.
"""

_INPUTS = """
Args:
    predictions: texts
    sources: the text that each of them paraphrases
    max_order, tokenize, lowercase: see `hf_paraphrase.metrics.pinc.scoring.pinc`
Returns:
    score, signature
Example:
    >>> load_metric("pinc").compute(predictions=["a b"], sources=["a c"])["score"]
    75.0
"""

_CITATION = """
@inproceedings{chen-dolan-2011-collecting, title = {Collecting highly parallel data for paraphrase evaluation},
  author = {Chen, David and Dolan, William}, booktitle = {ACL}, year = {2011}}
"""

_FEATURES = Features({"predictions": Value("string"), "sources": Value("string")})


class Pinc(CheckedMetric):
    """N-grams of paraphrases that their sources do not have."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://aclanthology.org/P11-1020"],
        )

    @staticmethod
    def _check(*, predictions: Any, sources: Any) -> dict[str, list]:
        predictions, sources = check_text_list("predictions", predictions), check_text_list("sources", sources)
        check_lengths(predictions=predictions, sources=sources)
        return {"predictions": predictions, "sources": sources}

    def _compute(self, *, predictions: list, sources: list, **options: Any) -> dict[str, Any]:
        return pinc(predictions, sources, **options)
