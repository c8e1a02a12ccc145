from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.preference.scoring import check_judgements, preference
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Preference"]

_DESCRIPTION = """
How often raters preferred one system to another, with ties, and how far they agreed: Cohen's and Fleiss' kappa.
"""

_INPUTS = """
Args:
    items: what was judged
    raters: who judged it
    choices: win, tie or loss of the first system
Returns:
    wins, ties, losses, win_share, tie_share, loss_share, judgements, items, raters, cohen_kappa, fleiss_kappa
Example:
    >>> metric = load_metric("preference")
    >>> metric.compute(items=["1", "1"], raters=["ann", "bob"], choices=["win", "win"])["wins"]
    2
"""

_CITATION = """
@article{cohen-1960, title = {A coefficient of agreement for nominal scales}, author = {Cohen, Jacob},
  journal = {Educational and Psychological Measurement}, year = {1960}}
@article{fleiss-1971, title = {Measuring nominal scale agreement among many raters}, author = {Fleiss, Joseph},
  journal = {Psychological Bulletin}, year = {1971}}
"""

_FEATURES = Features({"items": Value("string"), "raters": Value("string"), "choices": Value("string")})


class Preference(CheckedMetric):
    """Wins, ties, losses and the agreement of the raters."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://aclanthology.org/2020.acl-main.535"],
        )

    @staticmethod
    def _check(*, items: Any, raters: Any, choices: Any) -> dict[str, list]:
        items, raters, choices = check_judgements(items, raters, choices)
        return {"items": items, "raters": raters, "choices": choices}

    def _compute(self, *, items: list, raters: list, choices: list, **options: Any) -> dict[str, Any]:
        return preference(items, raters, choices, **options)
