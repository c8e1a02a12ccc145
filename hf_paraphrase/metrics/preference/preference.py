from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.preference.scoring import check_judgements, preference


class Preference(CheckedMetric):
    function = staticmethod(preference)
    _check = staticmethod(check_judgements)
