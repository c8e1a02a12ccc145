from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.inputs import check_text_list


class DistinctN(CheckedMetric):
    function = staticmethod(distinct_n)
    _check = staticmethod(lambda *, predictions: (check_text_list("predictions", predictions),))
    _citation = """
@inproceedings{li-etal-2016-diversity,
  title = {A diversity-promoting objective function for neural conversation models},
  author = {Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and Dolan, Bill}, booktitle = {NAACL},
  year = {2016}, url = {https://aclanthology.org/N16-1014}}
"""
