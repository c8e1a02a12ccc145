from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..inputs import check_losses
from ..sufficient_statistics import Scores, SufficientStatistics, divide


def perplexity(losses: Iterable[float], tokens: Iterable[int]) -> Scores:
    """Perplexity: e to the power of the negative log-likelihood of all texts divided by their tokens.

    It takes summed losses and token counts of any model, so that batches of different sizes count as they should.
    Lower is better.

    Args:
        losses: For each text (or batch of texts) the summed, not averaged, negative log-likelihood, natural logarithm.
        tokens: For each of them how many tokens it was summed over, padding left out, end marks included.

    Returns:
        `perplexity` (infinite where no float can hold it), `loss_per_token` (its logarithm), and
        the sums `loss` and `tokens`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("perplexity").compute(losses=[0.0, 0.0], tokens=[3, 5])["perplexity"]
        1.0

    Limits:
        - Comparable only for equal tokens: another vocabulary gives another score. Unknown words that count as one
          token flatter a model.

    Source: Jelinek et al. 1977.
    """
    losses, tokens = check_losses(losses, "tokens", tokens)
    rows = np.stack([losses, tokens], axis=1).astype(float)
    found = SufficientStatistics("perplexity", rows, _score_of_sums, "unit:nats", higher_is_better=False)
    loss, count = rows.sum(axis=0)
    sums = {"loss": float(loss), "tokens": int(count)}
    return Scores((found,), {"perplexity": found.score, "loss_per_token": float(loss / count), **sums})


def _score_of_sums(sums: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(divide(sums[..., 0], sums[..., 1]))
