"""How far the choice of test sentences, and of the training run, can explain a score or a difference of scores.

All functions work on `SufficientStatistics`, which every text metric here can give, and take one of them for a single
run, or a list for several training runs of the same system on the same test sentences (Clark et al. 2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..common.errors import InputError
from .sufficient_statistics import SufficientStatistics

Runs = SufficientStatistics | Sequence[SufficientStatistics]

# About this many numbers are drawn at a time: enough to keep numpy busy, few enough for the processor's cache.
_CHUNK = 1_000_000
# Of the 95% intervals, as shares of the resampled scores.
_BOUNDS = ((1 - 0.95) / 2, (1 + 0.95) / 2)


@dataclass(frozen=True)
class BootstrapResult:
    """A score with its resampling statistics."""

    score: float  # score of the corpus; with several runs, their mean
    low: float  # lower bound of the 95% confidence interval
    high: float  # upper bound of it
    selection_variance: float  # variance due to test-set selection; the mean over the runs
    optimizer_variance: float | None  # variance of the score between runs; None for a single run


def bootstrap(runs: Runs, *, n_samples: int = 1000, seed: int = 12345, resample_runs: bool = False) -> BootstrapResult:
    """Resample the test sentences with replacement: a percentile interval and the variance due to their selection.

    Args:
        runs: Statistics of one run, or a list of those of several.
        n_samples: How many resampled corpora, at least 2.
        seed: Of the resampling; equal seeds draw the same sentences for every metric of a corpus.
        resample_runs: Whether the interval is over the runs too: each sample draws as many of them, with replacement.

    Raises:
        InputError: Runs over different sentences or of different metrics, or too few samples.

    Source: Koehn 2004; Clark et al. 2011 for both variances.
    """
    runs = _check_runs(runs)
    _check_draws("n_samples", n_samples)
    scores = _resampled_scores(runs, n_samples, seed)
    drawn = _draw_runs(scores, np.random.default_rng(seed)) if resample_runs else scores
    low, high = np.quantile(drawn.mean(axis=0), _BOUNDS)
    return BootstrapResult(
        score=_mean_score(runs),
        low=float(low),
        high=float(high),
        selection_variance=float(scores.var(axis=1, ddof=1).mean()),
        optimizer_variance=float(np.var([run.score for run in runs], ddof=1)) if len(runs) > 1 else None,
    )


def bootstrap_difference(a: Runs, b: Runs, *, n_samples: int = 1000, seed: int = 12345) -> tuple[float, float, float]:
    """The difference of two systems' mean scores, and its percentile interval over test sentences and runs together.

    Each sample draws sentences, the same for both systems, and runs of each with replacement.

    Args:
        a: Statistics of one run of a system, or a list of those of several.
        b: The same for the other system; the number of runs may differ.
        n_samples: How many samples.
        seed: Of the resampling.

    Returns:
        The difference `a - b`, and the lower and upper bound of its interval.

    Raises:
        InputError: Runs over different sentences or of different metrics, or too few samples.
    """
    a, b = _check_systems(a, b)
    _check_draws("n_samples", n_samples)
    rng = np.random.default_rng(seed)
    means = [_draw_runs(_resampled_scores(runs, n_samples, seed), rng).mean(axis=0) for runs in (a, b)]
    low, high = np.quantile(means[0] - means[1], _BOUNDS)
    return _mean_score(a) - _mean_score(b), float(low), float(high)


def approximate_randomisation(a: Runs, b: Runs, *, n_trials: int = 10_000, seed: int = 12345) -> float:
    """The two-sided p-value of the difference between two systems, by shuffling who produced which output.

    If the systems were equally good, the outputs for a sentence could be handed round among all the runs of both.
    Every trial does that for each sentence on its own, which is the stratification, and scores the shuffled runs.

    Args:
        a: Statistics of one run of a system, or a list of those of several.
        b: The same for the other system; the number of runs may differ.
        n_trials: How many shuffles; the smallest p-value is `1 / (n_trials + 1)`.
        seed: Of the shuffling.

    Raises:
        InputError: Runs over different sentences or of different metrics, or too few trials.

    Source: Clark et al. 2011; Riezler and Maxwell 2005.
    """
    a, b = _check_systems(a, b)
    _check_draws("n_trials", n_trials)
    runs, rng = [*a, *b], np.random.default_rng(seed)
    differences = []
    for n_shuffles in _chunks(n_trials, len(runs) * len(runs[0].rows)):
        shuffled = _shuffled_sums(runs, n_shuffles, rng)
        scores = np.stack([run.score_of_sums(sums) for run, sums in zip(runs, shuffled, strict=True)])
        differences.append(scores[: len(a)].mean(axis=0) - scores[len(a) :].mean(axis=0))
    null, observed = np.concatenate(differences), _mean_score(a) - _mean_score(b)
    # Sums in another order differ in their last digits; an equal difference must not count as a smaller one.
    at_least = np.abs(null) >= abs(observed) - 1e-9 * max(1.0, abs(observed))
    return float((at_least.sum() + 1) / (len(null) + 1))  # the observed one counts as one of them


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests, so that at 0.05 a false discovery among them has a chance of 5% at most.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller than the one before, or
    more than 1. The tests may be dependent, such as several metrics on the same outputs.

    Args:
        p_values: One for each test.

    Returns:
        The corrected ones, in the same order.

    Source: Holm 1979.
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)
    corrected = np.empty(len(values))
    corrected[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1)
    return corrected.tolist()


def _shuffled_sums(
    runs: list[SufficientStatistics], n_shuffles: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """For each run the sums, `(n_shuffles, k)`, of the rows that the shuffles hand to it."""
    n_sentences = len(runs[0].rows)
    if len(runs) == 2:
        # One coin for each sentence is all there is to shuffle.
        swap = rng.integers(0, 2, size=(n_shuffles, n_sentences), dtype=np.uint8).astype(float)
        moved = swap @ (runs[1].rows - runs[0].rows)
        yield runs[0].rows.sum(axis=0) + moved
        yield runs[1].rows.sum(axis=0) - moved
        return
    owners = np.tile(np.arange(len(runs), dtype=np.uint8), (n_shuffles * n_sentences, 1))
    owners = rng.permuted(owners, axis=1, out=owners).reshape(n_shuffles, n_sentences, len(runs))
    for slot in range(len(runs)):
        taken = owners[:, :, slot]
        yield sum((taken == source).astype(float) @ run.rows for source, run in enumerate(runs))


def _resampled_scores(runs: list[SufficientStatistics], n_samples: int, seed: int) -> np.ndarray:
    """Scores `(runs, n_samples)` of resampled corpora; one sample holds the same sentences for every run."""
    rng, n_sentences, scores = np.random.default_rng(seed), len(runs[0].rows), []
    for size in _chunks(n_samples, n_sentences):
        drawn = rng.integers(0, n_sentences, size=(size, n_sentences))
        drawn += n_sentences * np.arange(size)[:, None]
        times_drawn = np.bincount(drawn.ravel(), minlength=size * n_sentences).reshape(size, n_sentences).astype(float)
        scores.append(np.stack([run.score_of_sums(times_drawn @ run.rows) for run in runs]))
    return np.concatenate(scores, axis=1)


def _draw_runs(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each sample, a column, as many runs as there are, with replacement."""
    return np.take_along_axis(scores, rng.integers(0, len(scores), size=scores.shape), axis=0)


def _chunks(total: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // width)
    for start in range(0, total, step):
        yield min(step, total - start)


def _mean_score(runs: list[SufficientStatistics]) -> float:
    return float(np.mean([run.score for run in runs]))


def _check_systems(a: Runs, b: Runs) -> tuple[list[SufficientStatistics], list[SufficientStatistics]]:
    a, b = _check_runs(a), _check_runs(b)
    _check_runs([*a, *b])
    return a, b


def _check_runs(runs: Runs) -> list[SufficientStatistics]:
    runs = [runs] if isinstance(runs, SufficientStatistics) else list(runs)
    if not runs:
        raise InputError("runs is empty; give the statistics of at least one run")
    for index, run in enumerate(runs):
        if (run.name, run.signature) != (runs[0].name, runs[0].signature):
            raise InputError(
                f"runs[{index}] holds {run.name} ({run.signature}), but runs[0] {runs[0].name} ({runs[0].signature}); "
                "compare scores of one metric, computed in one way"
            )
        if run.rows.shape != runs[0].rows.shape:
            raise InputError(
                f"runs[{index}] has {len(run.rows)} sentences, but runs[0] {len(runs[0].rows)}; all runs must be over "
                "the same test sentences"
            )
    return runs


def _check_draws(name: str, number: int) -> None:
    if number < 2:
        raise InputError(f"{name} must be at least 2, got {number}")
