"""Several paraphrasers on one split: each evaluated once, then scored side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset

from ..common.environment import describe_environment
from ..common.fields import parse_scalar
from ..common.files import write_text
from ..errors import InputError
from ..metrics.distinct_n.scoring import distinct_n
from ..metrics.score_files import ScoredTexts, read_scored_texts
from ..papers import find_compared_rows
from .paraphrases import COPIED, evaluate_paraphraser
from .results import Entry, Results, Score, describe_data, describe_papers
from .scoring import Scoring, score_without_interval

METRICS = ("rouge", "bleu", "meteor", "pinc")


@dataclass(frozen=True)
class System:
    """What is compared."""

    name: str  # in the table; its folder is called so, too
    path: str  # a checkpoint folder or a Hub repository
    # Arguments of `evaluate_paraphraser` that add to or replace the common ones.
    options: dict[str, Any] = field(default_factory=dict)


def parse_system(text: str) -> System:
    """Read `NAME=PATH[,OPTION=VALUE…]`, such as `wide=runs/first,num_beams=10`; raises InputError for another form."""
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
    trust_remote_code: bool = False,
) -> Results:
    """Evaluate paraphrasers on the same rows, and test whether they differ by more than chance.

    Args:
        systems: What to compare; the names differ.
        dataset: Rows as `evaluate_paraphraser` takes them.
        output_dir: It has a folder for each system; evaluations found there are reused.
        options: Arguments of `evaluate_paraphraser` that all systems have, such as `num_beams`.
        metric_options: For a metric the options of its function.
        metrics: Names out of `metrics.score_table.SCORED_METRICS`.
        against: Name of the system that the others are tested against; by default the first.
        n_trials: Shuffles for the p-values. With n tests, Holm's correction leaves none below 0.05 unless there are
            20 n of them.
        n_samples, seed, split, data, trust_remote_code: As of `evaluate_paraphraser`.

    Returns:
        An entry for each system, for the copied source, and for the rows of Table 2 of Kazemnejad et al. 2020 where
        the corpus has one. Scores have uncorrected p-values; diversity is measured over a row's outputs or candidates,
        and over the words of all outputs.

    Raises:
        InputError: Systems of one name, no such system to test against, or a folder with another evaluation.
    """
    names = [system.name for system in systems]
    against = against or names[0]
    if len(set(names)) < len(names) or COPIED in names:
        raise InputError(f"systems need names of their own: {', '.join(names)}")
    if against not in names:
        raise InputError(f"no system is called {against}; there are: {', '.join(names)}")
    metric_options = dict(metric_options or {})
    found = describe_data(data, split, len(dataset))
    scoring = Scoring(metrics, metric_options, n_samples, n_trials, seed)
    shared = {"metrics": list(metrics), "metric_options": metric_options, "n_samples": n_samples, "seed": seed}
    shared |= {"split": split, "data": dict(data or {}), **(options or {})}

    entries, statistics = {}, {}
    for system in systems:
        folder = output_dir / system.name
        settings = {**asdict(system), "shared": shared, "rows": len(dataset)}
        # Not among the settings: what comes out does not depend on it.
        trusting = {**shared, "trust_remote_code": trust_remote_code}
        make = partial(_evaluate, system, dataset, folder, trusting)
        results = evaluate_once(folder, split, settings, make)
        (entry,) = results.of("model")
        texts = read_scored_texts([folder / cast(str, entry.outputs)])
        alike = entry.diversity or entry.candidate_diversity
        entries[system.name] = replace(
            entry,
            system=system.name,
            diversity=(*alike, *_measure_words(texts.runs[0])),
            candidate_diversity=(),
            outputs=f"{system.name}/{entry.outputs}",
            environment=results.environment,
        )
        statistics[system.name] = scoring.collect(texts)
    sources = cast(list[str], texts.sources)
    entries[COPIED] = Entry(COPIED, "baseline", (), diversity=_measure_words(sources))
    statistics[COPIED] = scoring.collect(ScoredTexts([sources], texts.references, sources))
    scored = [
        replace(entry, scores=scoring.measure(statistics[name], None if name == against else statistics[against]))
        for name, entry in entries.items()
    ]
    environment = {"seed": seed, "n_samples": n_samples, "n_trials": n_trials}
    environment |= describe_environment(torch.device("cpu"))
    paper = describe_papers(find_compared_rows(found.path))
    return Results("comparison", found, (*scored, *paper), environment, against)


def evaluate_once(folder: Path, split: str, settings: Mapping[str, Any], evaluate: Callable[[], Results]) -> Results:
    """Evaluate a system, or reuse the earlier evaluation in its folder, by the same settings: all that determines the
    result.

    The folder has `results-SPLIT.json`, the outputs, and `system.json`, which says how they were made; other settings
    raise InputError.
    """
    # As JSON has it: a tuple read again is a list.
    asked = json.loads(json.dumps(settings, default=str))
    record, results = folder / "system.json", folder / f"results-{split}.json"
    if record.is_file() and results.is_file():
        if json.loads(record.read_text(encoding="utf-8")) != asked:
            raise InputError(f"{folder} holds an evaluation with other settings; remove it, or name another folder")
        return Results.load(results)
    made = evaluate()
    write_text(record, json.dumps(asked, indent=2, ensure_ascii=False) + "\n")
    return made


def _evaluate(system: System, dataset: Dataset, folder: Path, shared: Mapping[str, Any]) -> Results:
    options = {**shared, **system.options}
    if options.get("decoding") == "sample" and "num_beams" not in system.options:
        # The width for all is that of those which search.
        options["num_beams"] = 1
    for name in {"num_beams", "num_neighbors"} & options.keys():
        options[name] = [options[name]]
    return evaluate_paraphraser(system.path, None, dataset, output_dir=folder, **options)


def _measure_words(texts: list[str]) -> tuple[Score, ...]:
    return score_without_interval(distinct_n(texts, lowercase=True))
