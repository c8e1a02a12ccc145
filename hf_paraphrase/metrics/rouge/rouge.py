from __future__ import annotations

from typing import Any

import evaluate

from hf_paraphrase.metrics.rouge.scoring import rouge
from hf_paraphrase.metrics.text_metric import TEXT_FEATURES, TextMetric

__all__ = ["Rouge"]

_DESCRIPTION = """
ROUGE-1, 2 and L with rouge-score's figures, and ROUGE-W, whose longest common subsequence favours unbroken runs of
words: precision, recall and F against the reference with the best F.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    use_stemmer, weight, tokenize: see `hf_paraphrase.metrics.rouge.scoring.rouge`
Returns:
    rouge1, rouge2, rougeL, rougeW (F), for each of them NAME_precision and NAME_recall; signature
Example:
    >>> load_metric("rouge").compute(predictions=["a b c d"], references=["a b c e"])["rougeL"]
    75.0
"""

_CITATION = """
@inproceedings{lin-2004-rouge, title = {{ROUGE}: a package for automatic evaluation of summaries},
  author = {Lin, Chin-Yew}, booktitle = {Text Summarization Branches Out}, year = {2004}}
"""


class Rouge(TextMetric):
    """ROUGE-1, 2, L and W with precision and recall."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=TEXT_FEATURES,
            codebase_urls=["https://github.com/google-research/google-research/tree/master/rouge"],
            reference_urls=["https://aclanthology.org/W04-1013"],
        )

    def _compute(self, *, predictions: list[str], references: list[list[str]], **options: Any) -> dict[str, Any]:
        return rouge(predictions, references, **options)
