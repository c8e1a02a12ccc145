from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.rouge.scoring import rouge

__all__ = ["Rouge"]


class Rouge(CheckedMetric):
    """ROUGE: ROUGE-1, 2 and L with rouge-score's figures, and ROUGE-W; F, precision and recall.

    Overlap of single words (ROUGE-1), pairs (ROUGE-2), the longest common subsequence (ROUGE-L) and the longest common
    subsequence in which an unbroken run of k words is worth k to the power of `weight` (ROUGE-W, the same as ROUGE-L
    where it is 1), each as recall, which older papers call ROUGE, precision and F. The figures of the first three are
    those of rouge-score (https://github.com/google-research/google-research/tree/master/rouge), which has no ROUGE-W.

    Examples:
        >>> load_metric("rouge").compute(predictions=["a b c d"], references=["a b c e"])["rougeL"]
        75.0

    Limits:
        - Of several references the one with the best F counts, for each kind on its own, as in rouge-score;
          coco-caption combines the best precision with the best recall and weights recall, so its ROUGE-L is higher.
        - By default everything except a to z and 0 to 9 is dropped, as in the first ROUGE: other scripts score 0, with
          a warning, and `où` is `o`. Pass `tokenize="unicode"` for them.
        - Weighted subsequences follow Lin's table to the letter, which takes every match, even where passing it by
          would score more.
    """

    function = staticmethod(rouge)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{lin-2004-rouge, title = {{ROUGE}: a package for automatic evaluation of summaries},
  author = {Lin, Chin-Yew}, booktitle = {Text Summarization Branches Out}, year = {2004},
  url = {https://aclanthology.org/W04-1013}}
"""
