"""What all evaluators begin and end with: a model and its tokenizer, and scores with intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.errors import InputError
from ..common.files import write_lines
from ..metrics.score_files import ScoredTexts
from ..metrics.score_table import check_metrics, collect_statistics
from ..metrics.significance import approximate_randomisation, bootstrap
from ..metrics.sufficient_statistics import SufficientStatistics
from .results import Results, Score


@dataclass(frozen=True)
class Scoring:
    """How outputs are scored."""

    metrics: Sequence[str] = ()  # names out of `metrics.score_table.SCORED_METRICS`
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # for a metric the options of its function
    n_samples: int = 1000  # resampled corpora for the 95% intervals
    n_trials: int = 10_000  # shuffles for the p-values of a comparison
    seed: int = 12345  # of both

    def __post_init__(self):
        check_metrics(self.metrics)

    def collect(self, texts: ScoredTexts) -> dict[str, SufficientStatistics]:
        """The statistics of every score of the outputs of one run, by its name."""
        found = [collect_statistics(metric, texts, self.options.get(metric, {})) for metric in self.metrics]
        return {name: run for part in found for name, (run,) in part.items()}

    def measure(
        self, statistics: Mapping[str, SufficientStatistics], against: Mapping[str, SufficientStatistics] | None = None
    ) -> tuple[Score, ...]:
        """Scores by name with their intervals, and the p-values of their differences from those of another system."""
        scores = []
        for name, one in statistics.items():
            found = bootstrap(one, n_samples=self.n_samples, seed=self.seed)
            p_value = None
            if against is not None:
                p_value = approximate_randomisation(one, against[name], n_trials=self.n_trials, seed=self.seed)
            scores.append(
                Score(name, found.score, found.low, found.high, one.signature, found.selection_variance, p_value)
            )
        return tuple(scores)


def score_without_interval(found: Mapping[str, Any]) -> tuple[Score, ...]:
    """Scores out of what a metric returns, under its signature."""
    return tuple(
        Score(name, score, signature=found["signature"]) for name, score in found.items() if name != "signature"
    )


def save_results(
    results: Results, output_dir: str | os.PathLike | None, **outputs: Iterable[Mapping[str, Any]]
) -> Results:
    """Write `NAME-SPLIT.jsonl` for each of the outputs and `results-SPLIT.json` into a folder, if there is one."""
    if output_dir is not None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        for name, rows in outputs.items():
            write_lines(Path(output_dir) / f"{name}-{results.data.split}.jsonl", rows)
        results.save(Path(output_dir) / f"results-{results.data.split}.json")
    return results


def load_given(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    load: Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    trust_remote_code: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model, loaded if it is given by its path, and the tokenizer that was given or saved with it."""
    if not isinstance(model, PreTrainedModel):
        model, saved = load(model, trust_remote_code=trust_remote_code)
        tokenizer = tokenizer or saved
    if tokenizer is None:
        raise InputError("tokenizer is missing: give one, or give the model by its path")
    return model, tokenizer
