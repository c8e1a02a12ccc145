from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts


class Bleu(CheckedMetric):
    function = staticmethod(bleu)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{papineni-etal-2002-bleu, title = {BLEU: a method for automatic evaluation of machine translation},
  author = {Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing}, booktitle = {ACL}, year = {2002},
  url = {https://aclanthology.org/P02-1040}}
@inproceedings{post-2018-call, title = {A call for clarity in reporting BLEU scores}, author = {Post, Matt},
  booktitle = {WMT}, year = {2018}, url = {https://aclanthology.org/W18-6319}}
@inproceedings{koehn-2004-statistical, title = {Statistical significance tests for machine translation evaluation},
  author = {Koehn, Philipp}, booktitle = {EMNLP}, year = {2004}, url = {https://aclanthology.org/W04-3250}}
"""
