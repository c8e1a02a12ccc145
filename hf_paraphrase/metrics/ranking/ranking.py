from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ranking.scoring import check_rankings, ranking


class Ranking(CheckedMetric):
    function = staticmethod(ranking)
    _check = staticmethod(check_rankings)
