from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ibleu.scoring import check_paraphrases, ibleu

__all__ = ["Ibleu"]


class Ibleu(CheckedMetric):
    """iBLEU: BLEU against the references, less BLEU against the source.

    A copy of the source, which often has a high BLEU, loses. Both are of the corpus, by sacrebleu
    (https://github.com/mjpost/sacrebleu).

    Examples:
        >>> metric = load_metric("ibleu")
        >>> scores = metric.compute(predictions=["a b c d"], references=["a b c d"], sources=["e f g h"])
        >>> round(scores["score"], 2)
        80.0

    Limits:
        - Papers choose `alpha` between 0.7 and 0.9; scores are not comparable across values.
    """

    function = staticmethod(ibleu)
    _check = staticmethod(check_paraphrases)
    _citation = """
@inproceedings{sun-zhou-2012-joint, title = {Joint learning of a dual {SMT} system for paraphrase generation},
  author = {Sun, Hong and Zhou, Ming}, booktitle = {ACL}, year = {2012}, url = {https://aclanthology.org/P12-2008}}
"""
