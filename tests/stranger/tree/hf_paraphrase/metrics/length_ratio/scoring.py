from __future__ import annotations

from collections.abc import Iterable

from ..inputs import check_sources
from ..sufficient_statistics import Scores, SufficientStatistics


def length_ratio(predictions: Iterable[str], sources: Iterable[str]) -> Scores:
    """Length ratio: how many words paraphrases have for each word of their sources.

    Words of all paraphrases, divided by those of their sources.

    Args:
        predictions: One paraphrase each.
        sources: The text that each of them paraphrases.

    Returns:
        `score`, 1 where paraphrases are as long as their sources, and `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("length_ratio").compute(predictions=["a b"], sources=["a b c d"])["score"]
        0.5

    Limits:
        - It says nothing about meaning.
    """
    predictions, sources = check_sources(predictions, sources)
    words = ([len(text.split()) for text in texts] for texts in (predictions, sources))
    found = SufficientStatistics.from_ratio("length_ratio", *words, "words:white-space")
    return Scores((found,), {"score": found.score, "signature": found.signature})
