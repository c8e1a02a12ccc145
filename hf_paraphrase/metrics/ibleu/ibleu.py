from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ibleu.scoring import check_paraphrases, ibleu


class Ibleu(CheckedMetric):
    function = staticmethod(ibleu)
    _check = staticmethod(check_paraphrases)
    _citation = """
@inproceedings{sun-zhou-2012-joint, title = {Joint learning of a dual {SMT} system for paraphrase generation},
  author = {Sun, Hong and Zhou, Ming}, booktitle = {ACL}, year = {2012}, url = {https://aclanthology.org/P12-2008}}
"""
