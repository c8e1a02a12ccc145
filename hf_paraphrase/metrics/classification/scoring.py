from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...common.errors import InputError
from ..inputs import check_lengths, check_numbers
from ..sufficient_statistics import Scores, SufficientStatistics


def classification(
    predictions: Iterable[float], references: Iterable[int], *, threshold: float | None = None
) -> Scores:
    """Classification: accuracy, F1, and the largest F1 over all thresholds.

    For pairs that are paraphrases or not, and for labels of any number of classes.

    Args:
        predictions: One label each (whole numbers, any number of classes); or with `threshold` one score each, higher
            for class 1.
        references: The right label of each.
        threshold: Scores from here on mean class 1; None says that the predictions are labels.

    Returns:
        `accuracy`; where all labels are 0 or 1 also `precision`, `recall` and `f1` of class 1; with `threshold` also
        `max_f1` and `max_f1_threshold`, the largest threshold that reaches it. All scores are 0 to 1.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> metric = load_metric("classification")
        >>> metric.compute(predictions=[0.9, 0.4, 0.2], references=[1, 1, 0], threshold=0.5)["max_f1"]
        1.0

    Limits:
        - Choose a threshold on validation data; `max_f1` on a test set is a bound, not a result.

    Source: Dolan et al. 2004, for the task.
    """
    predictions, references = check_labels(predictions, references, threshold)
    labels = predictions if threshold is None else (predictions >= threshold).astype(int)
    # The interval of F1 is for a fixed threshold, however it was chosen.
    signature = "labels" if threshold is None else f"threshold:{threshold:g}"
    statistics = [SufficientStatistics.from_sentence_scores("accuracy", labels == references, signature)]
    result: dict[str, Any] = {"accuracy": float((labels == references).mean())}
    if {*labels.tolist(), *references.tolist()} <= {0, 1}:
        true, either = labels * references, labels + references
        statistics.append(SufficientStatistics.from_ratio("f1", 2 * true, either, signature))
        precision, recall = (_share(true.sum(), side.sum()) for side in (labels, references))
        result |= {"precision": precision, "recall": recall, "f1": _share(2 * true.sum(), either.sum())}
    if threshold is not None:
        result["max_f1"], result["max_f1_threshold"] = _find_max_f1(predictions, references)
    return Scores(statistics, result)


def check_number_pairs(predictions: Iterable[float], references: Iterable[int]) -> tuple[list[float], list[int]]:
    """Check that both are numbers, equally many; whether they must be labels depends on the threshold."""
    given, expected = check_numbers("predictions", predictions), check_numbers("references", references)
    check_lengths(predictions=given, references=expected)
    return given, expected


def check_labels(
    predictions: Iterable[float], references: Iterable[int], threshold: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Check labels, or scores and the labels 0 and 1."""
    predictions, references = check_number_pairs(predictions, references)
    labels: dict[str, list] = {"references": references}
    if threshold is None:
        labels = {"predictions": predictions, **labels}
    for name, values in labels.items():
        for index, value in enumerate(values):
            if value != int(value):
                raise InputError(f"{name}[{index}] is {value}, not a label; pass threshold for scores")
            if threshold is not None and value not in (0, 1):
                raise InputError(f"{name}[{index}] must be 0 or 1 where predictions are scores, got {value}")
    # Booleans would add up to booleans, and unsigned integers have no negative.
    return np.asarray(predictions, int if threshold is None else float), np.asarray(references, int)


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _find_max_f1(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    order = np.argsort(-scores, kind="stable")
    found = labels[order].cumsum()
    f1 = 2 * found / (np.arange(1, len(scores) + 1) + max(1, labels.sum()))
    # Equal scores fall on one side of any threshold.
    last_of_equals = np.append(np.diff(scores[order]) != 0, True)
    best = np.where(last_of_equals, f1, -1).argmax()
    return float(f1[best]), float(scores[order][best])
