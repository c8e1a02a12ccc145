from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.meteor.scoring import meteor


class Meteor(CheckedMetric):
    function = staticmethod(meteor)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{lavie-agarwal-2007-meteor, title = {{METEOR}: an automatic metric for {MT} evaluation with high levels
  of correlation with human judgments}, author = {Lavie, Alon and Agarwal, Abhaya}, booktitle = {WMT}, year = {2007},
  url = {https://aclanthology.org/W07-0734}}
@inproceedings{denkowski-lavie-2014-meteor, title = {Meteor universal: language specific translation evaluation for any
  target language}, author = {Denkowski, Michael and Lavie, Alon}, booktitle = {WMT}, year = {2014},
  url = {https://aclanthology.org/W14-3348}}
"""
