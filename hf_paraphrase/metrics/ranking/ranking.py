from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.ranking.scoring import check_rankings, ranking

__all__ = ["Ranking"]


class Ranking(CheckedMetric):
    """Ranking: P@1, mean reciprocal rank and mean average precision of candidates ranked by score.

    How often the first candidate is right, the mean of 1 / rank of the first right one, and the mean of the average
    precisions.

    Examples:
        >>> load_metric("ranking").compute(predictions=[[0.2, 0.9, 0.5]], references=[[1, 0, 0]])["mrr"]
        0.3333333333333333

    Limits:
        - Of equal scores the wrong ones rank first: a constant scores like the worst guess.
    """

    function = staticmethod(ranking)
    _check = staticmethod(check_rankings)
    _citation = """
@book{manning-etal-2008, title = {Introduction to information retrieval}, author = {Manning, Christopher and Raghavan,
  Prabhakar and Schütze, Hinrich}, publisher = {Cambridge University Press}, year = {2008},
  url = {https://nlp.stanford.edu/IR-book/}}
"""
