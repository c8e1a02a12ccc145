from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.classification.scoring import check_number_pairs, classification


class Classification(CheckedMetric):
    function = staticmethod(classification)
    _check = staticmethod(check_number_pairs)
    _citation = """
@inproceedings{dolan-etal-2004-unsupervised, title = {Unsupervised construction of large paraphrase corpora},
  author = {Dolan, Bill and Quirk, Chris and Brockett, Chris}, booktitle = {COLING}, year = {2004},
  url = {https://aclanthology.org/C04-1051}}
"""
