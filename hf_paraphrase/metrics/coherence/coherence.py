from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.coherence.scoring import check_documents, coherence


class Coherence(CheckedMetric):
    function = staticmethod(coherence)
    _check = staticmethod(check_documents)
    _citation = """
@inproceedings{li-etal-2015-hierarchical, title = {A hierarchical neural autoencoder for paragraphs and documents},
  author = {Li, Jiwei and Luong, Minh-Thang and Jurafsky, Dan}, booktitle = {ACL}, year = {2015},
  url = {https://aclanthology.org/P15-1107}}
"""
