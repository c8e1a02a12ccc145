from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_sources
from hf_paraphrase.metrics.pinc.scoring import pinc

__all__ = ["Pinc"]


class Pinc(CheckedMetric):
    """PINC: the share of a paraphrase's n-grams that its source does not have.

    For n from 1 to 4 the share of different n-grams that are new, averaged over n and over the sentences. Higher is
    newer.

    Examples:
        >>> load_metric("pinc").compute(predictions=["a b"], sources=["a c"])["score"]
        75.0

    Limits: - It says nothing about meaning: report it with BLEU or METEOR.
    """

    function = staticmethod(pinc)
    _check = staticmethod(check_sources)
    _citation = """
@inproceedings{chen-dolan-2011-collecting, title = {Collecting highly parallel data for paraphrase evaluation},
  author = {Chen, David and Dolan, William}, booktitle = {ACL}, year = {2011},
  url = {https://aclanthology.org/P11-1020}}
"""
