from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.ter.scoring import ter


class Ter(CheckedMetric):
    function = staticmethod(ter)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{snover-etal-2006-study, title = {A study of translation edit rate with targeted human annotation},
  author = {Snover, Matthew and Dorr, Bonnie and Schwartz, Rich and Micciulla, Linnea and Makhoul, John},
  booktitle = {AMTA}, year = {2006}, url = {https://aclanthology.org/2006.amta-papers.25}}
"""
