from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.classification.scoring import check_number_pairs, classification


class Classification(CheckedMetric):
    function = staticmethod(classification)
    _check = staticmethod(check_number_pairs)
