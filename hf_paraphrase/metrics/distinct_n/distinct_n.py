from __future__ import annotations

from typing import Any

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.inputs import check_text_list

__all__ = ["DistinctN"]


class DistinctN(CheckedMetric):
    """Distinct-n: the number of different n-grams of all texts together, divided by the number of their n-grams.

    Higher is more diverse.

    Examples:
        >>> load_metric("distinct_n").compute(predictions=["a b", "a b"])["distinct_1"]
        0.5

    Limits: - It falls as texts are added: compare equal numbers of texts of similar length.
    """

    function = staticmethod(distinct_n)
    _citation = """
@inproceedings{li-etal-2016-diversity,
  title = {A diversity-promoting objective function for neural conversation models},
  author = {Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and Dolan, Bill}, booktitle = {NAACL},
  year = {2016}, url = {https://aclanthology.org/N16-1014}}
"""

    @staticmethod
    def _check(*, predictions: Any) -> tuple[list]:
        return (check_text_list("predictions", predictions),)
