from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ibleu.scoring import check_paraphrases, ibleu


class Ibleu(CheckedMetric):
    function = staticmethod(ibleu)
    _check = staticmethod(check_paraphrases)
