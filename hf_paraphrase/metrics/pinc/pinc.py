from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_sources
from hf_paraphrase.metrics.pinc.scoring import pinc


class Pinc(CheckedMetric):
    function = staticmethod(pinc)
    _check = staticmethod(check_sources)
