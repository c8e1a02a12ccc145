from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...common.errors import InputError
from ..inputs import check_filled_list, check_lengths, check_list, check_numbers
from ..sufficient_statistics import Scores, SufficientStatistics

_NAMES = ("precision_at_1", "mrr", "map")


def ranking(predictions: Iterable[Sequence[float]], references: Iterable[int | Sequence[int]]) -> Scores:
    """Ranking: P@1, mean reciprocal rank and mean average precision of candidates ranked by score.

    How often the first candidate is right, the mean of 1 / rank of the first right one, and the mean of the average
    precisions.

    Args:
        predictions: For each query the scores of its candidates, higher is better.
        references: For each query the position of its one right candidate, or for each candidate 1 where it is right
            and 0 where not. Queries without a right candidate are skipped, as is usual for WikiQA.

    Returns:
        `precision_at_1`, `mrr`, `map` (0 to 1), `queries` (how many counted), `skipped` (how many had no right
        candidate).

    Raises:
        InputError: Input that cannot be scored, or no query with a right candidate; the message names the index.

    Examples:
        >>> load_metric("ranking").compute(predictions=[[0.2, 0.9, 0.5]], references=[[1, 0, 0]])["mrr"]
        0.3333333333333333

    Limits:
        - Of equal scores the wrong ones rank first: a constant scores like the worst guess.

    Source: Manning, Raghavan and Schütze 2008, section 8.4.
    """
    predictions, references = check_rankings(predictions, references)
    queries = zip(predictions, references, strict=True)
    rows = [_score_query(np.asarray(scores, float), np.asarray(labels)) for scores, labels in queries]
    counted = [row is not None for row in rows]
    if not any(counted):
        raise InputError("nothing to score: no query has a correct candidate")
    columns = zip(*(row or (0.0, 0.0, 0.0) for row in rows), strict=True)
    statistics = [
        SufficientStatistics.from_ratio(name, column, counted, "ties:wrong-first")
        for name, column in zip(_NAMES, columns, strict=True)
    ]
    counts = {"queries": sum(counted), "skipped": len(counted) - sum(counted)}
    return Scores(statistics, {one.name: one.score for one in statistics} | counts)


def check_rankings(
    predictions: Iterable[Sequence[float]], references: Iterable[int | Sequence[int]]
) -> tuple[list[list[float]], list[list[int]]]:
    """Check scores and labels of queries, and turn positions of the right candidate into labels."""
    rows, references = check_filled_list("predictions", predictions), check_list("references", references)
    check_lengths(predictions=rows, references=references)
    scores = [check_numbers(f"predictions[{index}]", row) for index, row in enumerate(rows)]
    return scores, [_check_labels(index, entry, len(scores[index])) for index, entry in enumerate(references)]


def _check_labels(index: int, entry: int | Sequence[int], count: int) -> list[int]:
    if isinstance(entry, (int, np.integer)):
        if not 0 <= entry < count:
            raise InputError(f"references[{index}] is {entry}, but predictions[{index}] has {count} candidates")
        return [int(position == entry) for position in range(count)]
    labels = check_list(f"references[{index}]", entry)
    if len(labels) != count:
        raise InputError(f"references[{index}] has {len(labels)} labels, but predictions[{index}] {count} scores")
    for position, label in enumerate(labels):
        if label not in (0, 1):
            raise InputError(f"references[{index}][{position}] must be 0 or 1, got {label!r}")
    return [int(label) for label in labels]


def _score_query(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float, float] | None:
    ranked = labels[np.lexsort((labels, -scores))]
    ranks = np.flatnonzero(ranked) + 1
    if not len(ranks):
        return None
    return float(ranked[0]), 1 / ranks[0], float(np.mean(np.arange(1, len(ranks) + 1) / ranks))
