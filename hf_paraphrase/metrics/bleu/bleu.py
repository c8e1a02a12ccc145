from __future__ import annotations

from typing import Any

import evaluate

from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.text_metric import TEXT_FEATURES, TextMetric

__all__ = ["Bleu"]

_DESCRIPTION = """
Corpus BLEU by sacrebleu: the geometric mean of the clipped n-gram precisions against all references, times a penalty
for predictions shorter than the closest reference.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    max_order, tokenize, lowercase, n_bootstrap, seed: see `hf_paraphrase.metrics.bleu.scoring.bleu`
Returns:
    score, bleu_1 to bleu_N, precisions, counts, totals, bp, sys_len, ref_len, max_order, signature; with
    n_bootstrap also bootstrap_mean and confidence_interval
Example:
    >>> load_metric("bleu").compute(predictions=["a b c d e"], references=[["a b c d f", "e"]])["precisions"]
    [100.0, 75.0, 66.66666666666667, 50.0]
"""

_CITATION = """
@inproceedings{papineni-etal-2002-bleu, title = {BLEU: a method for automatic evaluation of machine translation},
  author = {Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing}, booktitle = {ACL}, year = {2002}}
@inproceedings{post-2018-call, title = {A call for clarity in reporting BLEU scores},
  author = {Post, Matt}, booktitle = {WMT}, year = {2018}}
"""


class Bleu(TextMetric):
    """Corpus BLEU with sacrebleu's signature and, on request, a confidence interval."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=TEXT_FEATURES,
            codebase_urls=["https://github.com/mjpost/sacrebleu"],
            reference_urls=["https://aclanthology.org/P02-1040", "https://aclanthology.org/W18-6319"],
        )

    def _compute(self, *, predictions: list[str], references: list[list[str]], **options: Any) -> dict[str, Any]:
        return bleu(predictions, references, **options)
