from __future__ import annotations

from typing import Any

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_text_lists
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu

__all__ = ["SelfBleu"]


class SelfBleu(CheckedMetric):
    """Self-BLEU: how alike the candidates for one source are; lower is more diverse.

    Every candidate is scored with BLEU against each other candidate for the same source, one reference at a time. A
    source counts with the mean over its pairs, and the score is that of all sources as one corpus. The code is
    sacrebleu's (https://github.com/mjpost/sacrebleu).

    Examples:
        >>> scores = load_metric("self_bleu").compute(predictions=[["a b c d", "a b c d"]])
        >>> round(scores["self_bleu_4"], 2)
        100.0

    Limits:
        - Papers that score a candidate against all others at once report another figure: that one grows with the
          number of candidates alone (exchangeable ones gave 72.7, 83.3 and 85.4 for two, three and five), while the
          mean over pairs stays.
        - Candidates of a beam are ranked: the fifth is less like the first than the second is. A model that writes
          five is then more diverse than the same model's first two, and rightly so.
        - Nonsense is diverse.
    """

    function = staticmethod(self_bleu)
    _citation = """
@inproceedings{zhu-etal-2018-texygen, title = {Texygen: a benchmarking platform for text generation models},
  author = {Zhu, Yaoming and Lu, Sidi and Zheng, Lei and Guo, Jiaxian and Zhang, Weinan and Wang, Jun and Yu, Yong},
  booktitle = {SIGIR}, year = {2018}, url = {https://arxiv.org/abs/1802.01886}}
@inproceedings{kazemnejad-etal-2020-paraphrase, title = {Paraphrase generation by learning how to edit from samples},
  author = {Kazemnejad, Amirhossein and Salehi, Mohammadreza and Soleymani Baghshah, Mahdieh}, booktitle = {ACL},
  year = {2020}, url = {https://aclanthology.org/2020.acl-main.535}}
"""

    @staticmethod
    def _check(*, predictions: Any) -> tuple[list]:
        return (check_text_lists("predictions", predictions, minimum=2),)
