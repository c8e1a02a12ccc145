from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_sources
from hf_paraphrase.metrics.length_ratio.scoring import length_ratio


class LengthRatio(CheckedMetric):
    function = staticmethod(length_ratio)
    _check = staticmethod(check_sources)
