from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ranking.scoring import check_rankings, ranking


class Ranking(CheckedMetric):
    function = staticmethod(ranking)
    _check = staticmethod(check_rankings)
    _citation = """
@book{manning-etal-2008, title = {Introduction to information retrieval}, author = {Manning, Christopher and Raghavan,
  Prabhakar and Schütze, Hinrich}, publisher = {Cambridge University Press}, year = {2008},
  url = {https://nlp.stanford.edu/IR-book/}}
"""
