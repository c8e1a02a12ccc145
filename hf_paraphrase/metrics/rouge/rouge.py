from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.rouge.scoring import rouge


class Rouge(CheckedMetric):
    function = staticmethod(rouge)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{lin-2004-rouge, title = {{ROUGE}: a package for automatic evaluation of summaries},
  author = {Lin, Chin-Yew}, booktitle = {Text Summarization Branches Out}, year = {2004},
  url = {https://aclanthology.org/W04-1013}}
"""
