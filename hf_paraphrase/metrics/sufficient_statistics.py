from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class Scores(dict[str, Any]):
    """What a metric returns, and the statistics that its scores depend on, by the names of scores in tables."""

    def __init__(self, statistics: Iterable[SufficientStatistics], scores: Mapping[str, Any]):
        super().__init__(scores)
        self.statistics = {one.name: one for one in statistics}

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)  # since the statistics have functions


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """All that a corpus score depends on, as one row of numbers for each sentence.

    The score of a corpus, and of any resampling of it, is a function of the sum of its rows. So a resampled corpus
    costs one weighted sum instead of another run of the metric.

    Attributes:
        name: Name of the score in tables, for instance `rouge1`.
        rows: Array `(sentences, k)`.
        score_of_sums: From sums of rows, `(..., k)`, to scores, `(...)`; vectorised.
        signature: Everything that decides the figure: variant, tokenizer, case, version of the library.
        higher_is_better: False for error rates.
    """

    name: str
    rows: np.ndarray
    score_of_sums: Callable[[np.ndarray], np.ndarray]
    signature: str
    higher_is_better: bool = True

    @classmethod
    def from_ratio(
        cls,
        name: str,
        numerators: Sequence[float] | np.ndarray,
        denominators: Sequence[float] | np.ndarray,
        signature: str,
        *,
        scale: float = 1.0,
        higher_is_better: bool = True,
    ) -> SufficientStatistics:
        """The statistics of a score that is a ratio of sums; 0 if the denominator is 0."""
        rows = np.stack([np.asarray(numerators, float), np.asarray(denominators, float)], axis=1)

        def score_of_sums(sums: np.ndarray) -> np.ndarray:
            return scale * divide(sums[..., 0], sums[..., 1])

        return cls(name, rows, score_of_sums, signature, higher_is_better)

    @classmethod
    def from_sentence_scores(
        cls, name: str, scores: Sequence[float], signature: str, *, scale: float = 1.0, higher_is_better: bool = True
    ) -> SufficientStatistics:
        """The statistics of a score that is the mean of the scores of the sentences."""
        ones = np.ones(len(scores))
        return cls.from_ratio(name, scores, ones, signature, scale=scale, higher_is_better=higher_is_better)

    @property
    def score(self) -> float:
        """The score of the corpus."""
        return float(self.score_of_sums(self.rows.sum(axis=0)))


def divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """`numerator / denominator`, and 0 where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    return np.divide(numerator, denominator, out=np.zeros(shape), where=np.asarray(denominator) != 0)
