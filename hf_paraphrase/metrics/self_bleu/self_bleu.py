from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_paraphrase.metrics.inputs import check_text_lists
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["SelfBleu"]

_DESCRIPTION = """
Self-BLEU: every candidate for a source scored against each other candidate for it, the mean over these pairs. Lower is
more diverse.
"""

_INPUTS = """
Args:
    predictions: for each source a list of candidates, two at least
    tokenize, lowercase: see `hf_paraphrase.metrics.self_bleu.scoring.self_bleu`
Returns:
    self_bleu_2, self_bleu_4, signature
Example:
    >>> load_metric("self_bleu").compute(predictions=[["a b c d", "a b c d"]])["self_bleu_4"]
    100.00000000000004
"""

_CITATION = """
@inproceedings{zhu-etal-2018-texygen, title = {Texygen: a benchmarking platform for text generation models},
  author = {Zhu, Yaoming and Lu, Sidi and Zheng, Lei and Guo, Jiaxian and Zhang, Weinan and Wang, Jun and Yu, Yong},
  booktitle = {SIGIR}, year = {2018}}
"""

_FEATURES = Features({"predictions": List(Value("string"))})


class SelfBleu(CheckedMetric):
    """How alike the candidates for one source are."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://arxiv.org/abs/1802.01886"],
        )

    @staticmethod
    def _check(*, predictions: Any) -> dict[str, list]:
        predictions = check_text_lists("predictions", predictions, minimum=2)
        return {"predictions": predictions}

    def _compute(self, *, predictions: list, **options: Any) -> dict[str, Any]:
        return self_bleu(predictions, **options)
