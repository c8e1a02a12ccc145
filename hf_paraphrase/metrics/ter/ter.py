from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ter.scoring import ter


class Ter(CheckedMetric):
    function = staticmethod(ter)
