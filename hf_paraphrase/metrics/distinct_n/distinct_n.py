from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.inputs import check_text_list


class DistinctN(CheckedMetric):
    function = staticmethod(distinct_n)
    _check = staticmethod(lambda *, predictions: (check_text_list("predictions", predictions),))
