from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.rouge.scoring import rouge


class Rouge(CheckedMetric):
    function = staticmethod(rouge)
