from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.classification.scoring import check_number_pairs, classification

__all__ = ["Classification"]


class Classification(CheckedMetric):
    """Classification: accuracy, F1, and the largest F1 over all thresholds.

    For pairs that are paraphrases or not, and for labels of any number of classes.

    Examples:
        >>> metric = load_metric("classification")
        >>> metric.compute(predictions=[0.9, 0.4, 0.2], references=[1, 1, 0], threshold=0.5)["max_f1"]
        1.0

    Limits:
        - Choose a threshold on validation data; `max_f1` on a test set is a bound, not a result.
    """

    function = staticmethod(classification)
    _check = staticmethod(check_number_pairs)
    _citation = """
@inproceedings{dolan-etal-2004-unsupervised, title = {Unsupervised construction of large paraphrase corpora},
  author = {Dolan, Bill and Quirk, Chris and Brockett, Chris}, booktitle = {COLING}, year = {2004},
  url = {https://aclanthology.org/C04-1051}}
"""
