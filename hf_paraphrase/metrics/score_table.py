from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from typing import Any

from ..common.errors import InputError
from ..common.spreadsheet_cells import csv_writer
from . import scored_metrics
from .score_files import ScoredTexts
from .significance import approximate_randomisation, bootstrap
from .sufficient_statistics import SufficientStatistics

# What `score` offers, by what each metric declares.
SCORED_METRICS = scored_metrics()


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table: a score of a system, and of the one it is compared with."""

    metric: str  # name of the score
    score: float  # of the system; the mean where it has several runs
    low: float  # lower bound of its 95% interval
    high: float  # upper bound of it
    selection_variance: float  # variance due to test-set selection
    optimizer_variance: float | None  # variance between runs; None for a single run
    against: float | None  # score of the other system; None if not available
    against_low: float | None  # lower bound of its interval
    against_high: float | None  # upper bound of it
    p_value: float | None  # of the difference, by stratified approximate randomisation
    better: str | None  # `predictions` or `against`; None if they are equal, or without another system
    signature: str  # what was computed


def score_systems(
    texts: ScoredTexts,
    against: ScoredTexts | None = None,
    *,
    metrics: Sequence[str] = ("bleu", "ter"),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    n_samples: int = 1000,
    n_trials: int = 1000,
    seed: int = 12345,
) -> list[ScoreRow]:
    """Score the outputs of a system, with intervals, and compare them with another system's.

    Args:
        texts: Outputs, references and sources.
        against: The same of the other system, over the same test sentences.
        metrics: Names out of `SCORED_METRICS`.
        options: For a metric the options of its function, for instance `{"bleu": {"lowercase": False}}` to heed case,
            which is ignored otherwise.
        n_samples: Resampled corpora for the intervals.
        n_trials: Shuffles for the p-values.
        seed: Of both.

    Raises:
        InputError: An unknown metric, missing sources, other test sentences, or texts that cannot be scored.
    """
    if against is not None and (against.references, against.sources) != (texts.references, texts.sources):
        raise InputError("the systems to compare have different references or sources: other test sentences")
    rows = []
    for metric in metrics:
        ours = collect_statistics(metric, texts, (options or {}).get(metric, {}))
        theirs = collect_statistics(metric, against, (options or {}).get(metric, {})) if against else {}
        for name, runs in ours.items():
            own, other, better, p_value = bootstrap(runs, n_samples=n_samples, seed=seed), None, None, None
            if theirs:
                other = bootstrap(theirs[name], n_samples=n_samples, seed=seed)
                p_value = approximate_randomisation(runs, theirs[name], n_trials=n_trials, seed=seed)
                if other.score != own.score:
                    better = "predictions" if (own.score > other.score) == runs[0].higher_is_better else "against"
            row = ScoreRow(
                metric=name,
                **vars(own),
                against=other.score if other else None,
                against_low=other.low if other else None,
                against_high=other.high if other else None,
                p_value=p_value,
                better=better,
                signature=runs[0].signature,
            )
            rows.append(row)
    return rows


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse names that are not in `SCORED_METRICS`."""
    for metric in metrics:
        if metric not in SCORED_METRICS:
            raise InputError(f"unknown metric {metric!r}; available: {', '.join(SCORED_METRICS)}")


def collect_statistics(
    metric: str, texts: ScoredTexts, options: Mapping[str, Any]
) -> dict[str, list[SufficientStatistics]]:
    """For each score in the table, the statistics of each run."""
    check_metrics([metric])
    scored = SCORED_METRICS[metric]
    if "sources" in scored.inputs and texts.sources is None:
        raise InputError(f"{metric} needs the sources; give --sources, or predictions with a column or field `source`")
    compute = getattr(import_module(f".{metric}.scoring", __package__), metric)
    columns = [getattr(texts, name) for name in scored.inputs]
    options = {**scored.options, **options}
    runs = [compute(predictions, *columns, **options).statistics for predictions in texts.runs]
    return {name: [run[name] for run in runs] for name in scored.names}


def format_rows(rows: Sequence[ScoreRow], emphasise: Callable[[str], str] = str) -> str:
    """The table as text; `emphasise` is applied to the score of the better system, for instance to print it bold."""
    compared = rows[0].p_value is not None
    heads = ["metric", "score", "95% interval", *(["against", "95% interval", "p"] if compared else []), "signature"]
    table = [heads, *(_format_row(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(heads))]
    lines = []
    for index, cells in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        if index and rows[index - 1].better:
            column = 1 if rows[index - 1].better == "predictions" else 3
            padded[column] = emphasise(cells[column]) + " " * (widths[column] - len(cells[column]))
        lines.append("  ".join(padded).rstrip())
    if compared:
        lines.append("* better, p < 0.05 (stratified approximate randomisation, two-sided)")
    return "\n".join(lines)


def format_as_json(rows: Sequence[ScoreRow]) -> str:
    """The rows as a JSON list of objects."""
    return json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)


def format_as_csv(rows: Sequence[ScoreRow]) -> str:
    """The rows as CSV with a header; missing values are empty."""
    text = io.StringIO()
    writer = csv_writer(text, [field.name for field in fields(ScoreRow)])
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue().rstrip("\n")


def _format_row(row: ScoreRow) -> list[str]:
    significant = row.p_value is not None and row.p_value < 0.05
    ours, theirs = ("*" if significant and row.better == system else "" for system in ("predictions", "against"))
    cells = [row.metric, f"{row.score:.2f}{ours}", f"{row.low:.2f} to {row.high:.2f}"]
    if row.p_value is not None:
        cells += [
            f"{row.against:.2f}{theirs}",
            f"{row.against_low:.2f} to {row.against_high:.2f}",
            f"{row.p_value:.4f}",
        ]
    return [*cells, row.signature]
