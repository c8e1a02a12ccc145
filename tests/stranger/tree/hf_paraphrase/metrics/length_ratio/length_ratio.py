from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_sources
from hf_paraphrase.metrics.length_ratio.scoring import length_ratio

__all__ = ["LengthRatio"]


class LengthRatio(CheckedMetric):
    """Length ratio: how many words paraphrases have for each word of their sources.

    Words of all paraphrases, divided by those of their sources.

    Examples:
        >>> load_metric("length_ratio").compute(predictions=["a b"], sources=["a b c d"])["score"]
        0.5

    Limits:
        - It says nothing about meaning.
    """

    function = staticmethod(length_ratio)
    _check = staticmethod(check_sources)
    _citation = """
@misc{anonymous-2026-length, title = {Counting words}, author = {Anonymous}, year = {2026}}
"""
