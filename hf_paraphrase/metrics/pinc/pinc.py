from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_sources
from hf_paraphrase.metrics.pinc.scoring import pinc


class Pinc(CheckedMetric):
    function = staticmethod(pinc)
    _check = staticmethod(check_sources)
    _citation = """
@inproceedings{chen-dolan-2011-collecting, title = {Collecting highly parallel data for paraphrase evaluation},
  author = {Chen, David and Dolan, William}, booktitle = {ACL}, year = {2011},
  url = {https://aclanthology.org/P11-1020}}
"""
