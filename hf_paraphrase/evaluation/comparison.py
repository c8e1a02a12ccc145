"""Several paraphrasers on one split: each evaluated once, then scored side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from ..errors import InputError
from ..files import write_text
from ..metrics.distinct_n.scoring import distinct_n
from ..metrics.score_files import ScoredTexts, read_scored_texts
from ..metrics.score_table import collect_statistics
from ..metrics.significance import approximate_randomisation, bootstrap
from ..metrics.sufficient_statistics import SufficientStatistics
from ..papers import find_compared_rows
from ..training.environment import describe_environment
from ..training.fields import parse_scalar
from .paraphrases import evaluate_paraphraser

__all__ = ["METRICS", "System", "compare_paraphrasers", "evaluate_once", "parse_system"]

METRICS = ("rouge", "bleu", "meteor", "pinc")
COPIED = "the source, copied"


@dataclass(frozen=True)
class System:
    """What is compared.

    Attributes:
        name: In the table; its folder is called so, too.
        path: A checkpoint folder or a Hub repository.
        options: Of `evaluate_paraphraser`, beside those that all systems have or in their place.
    """

    name: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)


def parse_system(text: str) -> System:
    """Read `NAME=PATH[,OPTION=VALUE…]`, for instance `wide=runs/first,num_beams=10`.

    Raises:
        InputError: It is not of that form.
    """
    first, *others = text.split(",")
    name, _, path = first.partition("=")
    options = dict(pair.partition("=")[::2] for pair in others)
    if not (name and path and all(options.values())) or "/" in name:
        raise InputError(f"a system is NAME=PATH[,OPTION=VALUE…], with no slash in its name; got {text!r}")
    return System(name, path, {option: parse_scalar(value) for option, value in options.items()})


def compare_paraphrasers(
    systems: Sequence[System],
    dataset: Dataset,
    output_dir: Path,
    *,
    options: Mapping[str, Any] | None = None,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    metrics: Sequence[str] = METRICS,
    against: str | None = None,
    n_samples: int = 1000,
    n_trials: int = 10_000,
    seed: int = 12345,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Evaluate paraphrasers on the same rows, and test whether they differ by more than chance.

    Args:
        systems: What to compare; the names differ.
        dataset: Rows as `evaluate_paraphraser` takes them.
        output_dir: Each system has a folder in it; what is evaluated there is not evaluated again.
        options: Arguments of `evaluate_paraphraser` that all systems have, such as `num_beams`.
        metric_options: For a metric the options of its function.
        metrics: Names out of `metrics.score_table.SCORED_METRICS`.
        against: Name of the system that the others are tested against; by default the first.
        n_samples: Resampled corpora for the 95% intervals.
        n_trials: Shuffles for the p-values. With n tests, Holm's correction leaves none below 0.05 unless there are
            20 n of them.
        seed: Of both.
        split: Name of the split.
        data: Where the rows come from, as `load_dataset` spells it.

    Returns:
        `systems` (the copied source among them; for each `scores`, with interval and uncorrected p-value by metric,
        `diversity`, `num_parameters`, `sentences_per_second`, how it decoded, and where it edits by pairs which ones
        were left out), `against`, `paper` (Table 2 of Kazemnejad et al.
        2020 where the corpus has one), `data`, `signatures` and `environment`.

    Raises:
        InputError: Systems of one name, no such system to test against, or a folder with another evaluation.
    """
    names = [system.name for system in systems]
    against = against or names[0]
    if len(set(names)) < len(names) or COPIED in names:
        raise InputError(f"systems need names of their own: {', '.join(names)}")
    if against not in names:
        raise InputError(f"no system is called {against}; there are: {', '.join(names)}")
    metric_options = {"bleu": {"lowercase": True}, "pinc": {"lowercase": True}, **(metric_options or {})}
    shared = {"metrics": list(metrics), "metric_options": metric_options, "n_samples": n_samples, "seed": seed}
    shared |= {"split": split, "data": dict(data or {}), **(options or {})}

    entries, statistics = {}, {}
    for system in systems:
        folder = output_dir / system.name
        results = evaluate_once(system, dataset, folder, shared)
        (predictions,) = folder.glob(f"predictions-{split}-*.jsonl")
        texts = read_scored_texts([predictions])
        entries[system.name] = asdict(system) | _describe(results, texts.runs[0])
        statistics[system.name] = _collect(texts, metrics, metric_options)
    entries[COPIED] = {"name": COPIED, "diversity": _distinct(texts.sources)}
    copied = ScoredTexts([texts.sources], texts.references, texts.sources)
    statistics[COPIED] = _collect(copied, metrics, metric_options)
    for name, entry in entries.items():
        entry["scores"] = {
            metric: _score(one, None if name == against else statistics[against][metric], n_samples, n_trials, seed)
            for metric, one in statistics[name].items()
        }
    return {
        "systems": list(entries.values()),
        "against": against,
        "paper": [row._asdict() for row in find_compared_rows((data or {}).get("path"))],
        "data": {**(data or {}), "split": split, "rows": len(dataset)},
        "signatures": {metric: one.signature for metric, one in statistics[against].items()},
        "environment": {
            "seed": seed,
            "n_samples": n_samples,
            "n_trials": n_trials,
            **describe_environment(torch.device("cpu")),
        },
    }


def evaluate_once(system: System, dataset: Dataset, folder: Path, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate a system, or read what an earlier evaluation left in its folder.

    Args:
        system: The system.
        dataset: The rows.
        folder: For `predictions-*.jsonl`, `results-SPLIT.json`, and `system.json`, which says how they were made.
        shared: Arguments of `evaluate_paraphraser`; the system's own go before them.

    Raises:
        InputError: The folder holds an evaluation with other settings.
    """
    # As JSON has it: a tuple read again is a list.
    asked = json.loads(json.dumps({**asdict(system), "shared": {**shared}, "rows": len(dataset)}, default=str))
    record, results = folder / "system.json", folder / f"results-{shared['split']}.json"
    if record.is_file() and results.is_file():
        if json.loads(record.read_text(encoding="utf-8")) != asked:
            raise InputError(f"{folder} holds an evaluation with other settings; remove it, or name another folder")
        return json.loads(results.read_text(encoding="utf-8"))
    options = {**shared, **system.options}
    for name in {"num_beams", "num_neighbors"} & options.keys():
        options[name] = [options[name]]
    made = evaluate_paraphraser(system.path, None, dataset, output_dir=folder, **options)
    write_text(record, json.dumps(asked, indent=2, ensure_ascii=False) + "\n")
    return made


def _describe(results: Mapping[str, Any], predictions: list[str]) -> dict[str, Any]:
    """What an evaluation tells about a system beside its scores."""
    (entry,) = results["generation"]
    alike = entry.get("self_bleu") or entry.get("candidate_self_bleu") or {}
    return {
        "model_type": results["model"]["model_type"],
        "num_parameters": results["model"]["num_parameters"],
        "sentences_per_second": entry["sentences_per_second"],
        "decoding": entry["decoding"],
        "perplexity": results["perplexity"]["perplexity"],
        "diversity": alike | _distinct(predictions),
        **({"retrieval": results["retrieval"]} if "retrieval" in results else {}),
        "evaluated": {name: results["environment"][name] for name in ("device", "commit", "date")},
    }


def _distinct(texts: list[str]) -> dict[str, float]:
    scores = distinct_n(texts, lowercase=True)
    return {name: scores[name] for name in ("distinct_1", "distinct_2")}


def _collect(
    texts: ScoredTexts, metrics: Sequence[str], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, SufficientStatistics]:
    """The statistics of every score, by its name."""
    found = [collect_statistics(metric, texts, options.get(metric, {})) for metric in metrics]
    return {name: run for part in found for name, (run,) in part.items()}


def _score(
    one: SufficientStatistics, other: SufficientStatistics | None, n_samples: int, n_trials: int, seed: int
) -> dict[str, Any]:
    """A score with its interval, and the p-value of its difference from another system's."""
    result = bootstrap(one, n_samples=n_samples, seed=seed)
    p_value = None if other is None else approximate_randomisation(one, other, n_trials=n_trials, seed=seed)
    return {"score": result.score, "low": result.low, "high": result.high, "p_value": p_value}
