from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.perplexity.scoring import perplexity
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Perplexity"]

_DESCRIPTION = """
Perplexity from summed losses and token counts of any model, so that batches of different sizes count as they should.
"""

_INPUTS = """
Args:
    losses: for each text the summed negative log-likelihood, natural logarithm
    tokens: for each text the number of its tokens
Returns:
    perplexity, loss_per_token, loss, tokens
Example:
    >>> load_metric("perplexity").compute(losses=[0.0, 0.0], tokens=[3, 5])["perplexity"]
    1.0
"""

_FEATURES = Features({"losses": Value("float64"), "tokens": Value("int64")})


class Perplexity(CheckedMetric):
    """Perplexity from sums."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=_FEATURES,
        )

    @staticmethod
    def _check(*, losses: Any, tokens: Any) -> dict[str, list]:
        losses, tokens = check_losses(losses, "tokens", tokens)
        return {"losses": losses, "tokens": tokens}

    def _compute(self, *, losses: list, tokens: list, **options: Any) -> dict[str, Any]:
        return perplexity(losses, tokens, **options)
