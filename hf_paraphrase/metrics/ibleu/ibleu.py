from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_paraphrase.metrics.ibleu.scoring import ibleu
from hf_paraphrase.metrics.inputs import check_lengths, check_text_list, check_texts
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Ibleu"]

_DESCRIPTION = """
iBLEU: BLEU against the references less BLEU against the source, weighted, so that a copy of the source scores little.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    sources: the text that each prediction paraphrases
    alpha, tokenize, lowercase: see `hf_paraphrase.metrics.ibleu.scoring.ibleu`
Returns:
    score, bleu, source_bleu, alpha, signature
Example:
    >>> metric = load_metric("ibleu")
    >>> metric.compute(predictions=["a b c d"], references=["a b c d"], sources=["e f g h"])["score"]
    80.00000000000003
"""

_CITATION = """
@inproceedings{sun-zhou-2012-joint, title = {Joint learning of a dual {SMT} system for paraphrase generation},
  author = {Sun, Hong and Zhou, Ming}, booktitle = {ACL}, year = {2012}}
"""

_FEATURES = Features({"predictions": Value("string"), "references": List(Value("string")), "sources": Value("string")})


class Ibleu(CheckedMetric):
    """BLEU less a share of the BLEU against the source."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            codebase_urls=["https://github.com/mjpost/sacrebleu"],
            reference_urls=["https://aclanthology.org/P12-2008"],
        )

    @staticmethod
    def _check(*, predictions: Any, references: Any, sources: Any) -> dict[str, list]:
        predictions, references = check_texts(predictions, references)
        sources = check_text_list("sources", sources)
        check_lengths(predictions=predictions, sources=sources)
        return {"predictions": predictions, "references": references, "sources": sources}

    def _compute(self, *, predictions: list, references: list, sources: list, **options: Any) -> dict[str, Any]:
        return ibleu(predictions, references, sources, **options)
