from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.preference.scoring import check_judgements, preference


class Preference(CheckedMetric):
    function = staticmethod(preference)
    _check = staticmethod(check_judgements)
    _citation = """
@article{cohen-1960, title = {A coefficient of agreement for nominal scales}, author = {Cohen, Jacob},
  journal = {Educational and Psychological Measurement}, year = {1960}}
@article{fleiss-1971, title = {Measuring nominal scale agreement among many raters}, author = {Fleiss, Joseph},
  journal = {Psychological Bulletin}, year = {1971}}
@inproceedings{kazemnejad-etal-2020-paraphrase, title = {Paraphrase generation by learning how to edit from samples},
  author = {Kazemnejad, Amirhossein and Salehi, Mohammadreza and Soleymani Baghshah, Mahdieh}, booktitle = {ACL},
  year = {2020}, url = {https://aclanthology.org/2020.acl-main.535}}
"""
