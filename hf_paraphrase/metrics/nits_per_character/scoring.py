from __future__ import annotations

import math
from collections.abc import Iterable

from ..inputs import check_losses
from ..sufficient_statistics import Scores, SufficientStatistics


def nits_per_character(losses: Iterable[float], characters: Iterable[int]) -> Scores:
    """Nits per character: the loss of a language model, in nats, divided by the number of characters.

    Comparable between models of characters and models of words. Lower is better.

    Args:
        losses: For each text (or batch of texts) the summed, not averaged, negative log-likelihood, natural logarithm.
        characters: For each of them how many characters it was summed over, end marks included if they were predicted.

    Returns:
        `nits_per_character`, `bits_per_character` (the same divided by ln 2), and the sums `loss` and `characters`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("nits_per_character").compute(losses=[6.0, 4.0], characters=[3, 5])["nits_per_character"]
        1.25

    Limits:
        - Give sums: means of batches of different sizes do not average.
        - Say whether end marks count as characters; they must if they were predicted.

    Source: Traynor 2018, which reports costs in nits per character.
    """
    losses, characters = check_losses(losses, "characters", characters)
    name = "nits_per_character"
    found = SufficientStatistics.from_ratio(name, losses, characters, "unit:nats", higher_is_better=False)
    loss, count = found.rows.sum(axis=0)
    sums = {"loss": float(loss), "characters": int(count)}
    return Scores((found,), {name: found.score, "bits_per_character": found.score / math.log(2), **sums})
