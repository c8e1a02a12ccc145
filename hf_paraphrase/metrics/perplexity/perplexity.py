from __future__ import annotations

from typing import Any

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.perplexity.scoring import perplexity

__all__ = ["Perplexity"]


class Perplexity(CheckedMetric):
    """Perplexity: e to the power of the negative log-likelihood of all texts divided by their tokens.

    It takes summed losses and token counts of any model, so that batches of different sizes count as they should.
    Lower is better.

    Examples:
        >>> load_metric("perplexity").compute(losses=[0.0, 0.0], tokens=[3, 5])["perplexity"]
        1.0

    Limits:
        - Comparable only for equal tokens: another vocabulary gives another score. Unknown words that count as one
          token flatter a model.
    """

    function = staticmethod(perplexity)
    _citation = """
@article{jelinek-etal-1977-perplexity, title = {Perplexity: a measure of the difficulty of speech recognition tasks},
  author = {Jelinek, Fred and Mercer, Robert and Bahl, Lalit and Baker, James},
  journal = {Journal of the Acoustical Society of America}, year = {1977}}
"""

    @staticmethod
    def _check(*, losses: Any, tokens: Any) -> tuple[list, list]:
        return check_losses(losses, "tokens", tokens)
