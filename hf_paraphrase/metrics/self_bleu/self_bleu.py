from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_text_lists
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu


class SelfBleu(CheckedMetric):
    function = staticmethod(self_bleu)
    _check = staticmethod(lambda *, predictions: (check_text_lists("predictions", predictions, minimum=2),))
    _citation = """
@inproceedings{zhu-etal-2018-texygen, title = {Texygen: a benchmarking platform for text generation models},
  author = {Zhu, Yaoming and Lu, Sidi and Zheng, Lei and Guo, Jiaxian and Zhang, Weinan and Wang, Jun and Yu, Yong},
  booktitle = {SIGIR}, year = {2018}, url = {https://arxiv.org/abs/1802.01886}}
@inproceedings{kazemnejad-etal-2020-paraphrase, title = {Paraphrase generation by learning how to edit from samples},
  author = {Kazemnejad, Amirhossein and Salehi, Mohammadreza and Soleymani Baghshah, Mahdieh}, booktitle = {ACL},
  year = {2020}, url = {https://aclanthology.org/2020.acl-main.535}}
"""
