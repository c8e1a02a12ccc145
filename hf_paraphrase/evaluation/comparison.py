"""Several paraphrasers on one split, each evaluated once: as a Markdown table, as CSV, and as a picture."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from xxhash import xxh3_64_hexdigest

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.fields import parse_scalar
from ..common.files import state_of_file, write_text
from ..common.pictures import curve_style, in_style, new_figure, save_figure
from ..common.spreadsheet_cells import csv_writer, quote_formulas
from ..metrics.distinct_n.scoring import distinct_n
from ..metrics.score_files import ScoredTexts, read_scored_texts
from ..metrics.significance import holm
from ..papers import find_compared_rows
from .paraphrases import COPIED, evaluate_paraphraser
from .results import Entry, Results, Score, describe_data, describe_papers, format_table, join_distinct
from .scoring import Scoring, score_without_interval

# Of a checkpoint, what its outputs follow from.
MODEL_FILES = ("*.json", "*.safetensors", "retriever/*")
METRICS = ("rouge", "bleu", "meteor", "pinc")
# The columns of Table 2 of Kazemnejad et al. 2020, in order, and PINC; other metrics follow.
SCORES = {
    "rouge2": "ROUGE-2",
    "rouge1": "ROUGE-1",
    "bleu_4": "BLEU-4",
    "bleu_2": "BLEU-2",
    "meteor": "METEOR",
    "pinc": "PINC",
}
# Computed beside the two that the paper has.
HIDDEN = ("rougeL", "rougeW")
DIVERSITY = {"self_bleu_2": "self-BLEU-2", "distinct_1": "distinct-1", "distinct_2": "distinct-2"}
SPEED = {"num_parameters": "parameters", "sentences_per_second": "sentences/s"}
# Which of them are shown, with how many digits; shares of words are below 1.
DIGITS = {"self_bleu_2": 1, "distinct_1": 3, "distinct_2": 3}
SIGNIFICANT = 0.05


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

    rows = xxh3_64_hexdigest(json.dumps(dataset.to_list(), default=str).encode())
    entries, statistics = {}, {}
    for system in systems:
        folder = output_dir / system.name
        settings = {**asdict(system), "shared": shared, "model": _state_of(Path(system.path)), "rows": rows}
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


def _state_of(model: Path) -> str | None:
    """What changes with the files of a model on this machine; None for one of the Hub."""
    files = [model] if model.is_file() else sorted(file for kind in MODEL_FILES for file in model.glob(kind))
    states = "".join(f"{file.name}\0{state_of_file(file)}\0" for file in files if file.is_file())
    return xxh3_64_hexdigest(states.encode()) if states else None


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


def format_comparison_as_markdown(results: Results, command: str) -> str:
    """The table, a line for each system, the published rows below, and how all of it came about, by which command.

    A star marks scores that differ from the baseline's with p < 0.05 after Holm's correction for all tests of the
    table.
    """
    columns, models, paper = _columns(results), results.of("model"), results.of("paper")
    corrected, notes = correct_p_values(results), _describe_retrievals(models)
    if paper:
        notes += ["", "The rows of Kazemnejad et al. 2020 are of another split; “as reported” it took over itself."]
    if paper and "meteor" in columns:
        notes += ["", "The paper's METEOR is another METEOR than this one: its column compares ours with ours only."]
    heads = ["system", *columns.values(), *DIVERSITY.values(), "chosen by", *SPEED.values()]
    return "\n".join(
        [
            *format_table(heads, (_cells(entry, columns, corrected) for entry in results.entries)),
            "",
            f"{results.data.label}. ± is half of the 95% interval (bootstrap, {results.environment['n_samples']} "
            f"samples). {_describe_marks(results, corrected)} PINC: how many n-grams are not the source's. "
            "Self-BLEU-2: how alike two of a row's outputs are, before one is chosen, the mean over pairs of them; "
            "less is more diverse. Chosen by: how one of them is kept; “score” keeps the likeliest, “jaccard” the one "
            "most like the source, as the paper does. Sentences a second: with all those outputs.",
            *notes,
            "",
            f"Evaluated on {join_distinct(entry.environment['device'] for entry in models)}, commit "
            f"{join_distinct((entry.environment['commit'] or 'unknown')[:10] for entry in models)}, "
            f"{join_distinct(entry.environment['date'][:10] for entry in models)}:",
            "",
            *(f"    {line}" for line in command.splitlines()),
            "",
            *(f"- {title}: `{models[0].score_of(score).signature}`" for score, title in columns.items()),
            "",
        ]
    )


def format_comparison_as_csv(results: Results) -> str:
    """A line for each system and published row; of each score the bounds and p-values too, empty where unknown: `_p`
    of the test alone, `_holm` after Holm's correction for all tests of the table."""
    shown, corrected = _columns(results), correct_p_values(results)
    columns = [f"{score}{part}" for score in shown for part in ("", "_low", "_high", "_p", "_holm")]
    text = io.StringIO()
    names = ["system", "source", *columns, *DIVERSITY, "chosen_by", *SPEED]
    writer = csv_writer(text, names)
    for entry in results.entries:
        published = entry.role == "paper"
        row = quote_formulas({"system": entry.system}) | {"source": "published" if published else "measured"}
        for name in [*shown, *DIVERSITY]:
            score = entry.find(name)
            row[name] = score and score.score
            if score and name in shown:
                row |= {f"{name}_low": score.low, f"{name}_high": score.high, f"{name}_p": score.p_value}
                row[f"{name}_holm"] = corrected.get((entry.system, name))
        row["chosen_by"] = None if published else (entry.decoding and entry.decoding.rule) or "-"
        row["num_parameters"] = entry.model and entry.model.num_parameters
        row["sentences_per_second"] = entry.speed and entry.speed.per_second
        writer.writerow(row)
    return text.getvalue()


def correct_p_values(results: Results) -> dict[tuple[str, str], float]:
    """The p-values after Holm's correction for all tests that the table shows, by system and score."""
    tests = {
        (entry.system, score.metric): score.p_value
        for entry in results.entries
        for score in map(entry.find, _columns(results))
        if score and score.p_value is not None
    }
    return dict(zip(tests, holm(list(tests.values())), strict=True))


@in_style
def plot_quality_against_diversity(results: Results, path: str | os.PathLike) -> None:
    """Draw BLEU-4 over PINC, and over self-BLEU-2 of the outputs that one was chosen from, a dot a system, as PNG.
    Figure 6 of Kazemnejad et al. 2020 has the same measures, over K."""
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, entry in enumerate(entry for entry in results.entries if entry.role != "paper"):
        style = {**curve_style(number), "linestyle": "", "markersize": 6}
        quality, pinc, alike = entry.score_of("bleu_4"), entry.score_of("pinc"), entry.find("self_bleu_2")
        bars = {"xerr": _error(pinc), "yerr": _error(quality)}
        left.errorbar(pinc.score, quality.score, **bars, **style, label=entry.system)
        if alike is not None:
            right.errorbar(alike.score, quality.score, yerr=_error(quality), **style)
    left.set(xlabel="PINC (more is more diverse)", ylabel="BLEU-4")
    right.set(xlabel="self-BLEU-2 of the candidates (less is more diverse)")
    for axes in (left, right):
        axes.grid(True)
    figure.legend(loc="outside right center")
    save_figure(figure, path)


def _columns(results: Results) -> dict[str, str]:
    """The scores that the table has, with their titles."""
    found = [score.metric for score in results.entries[0].scores]
    known = {name: title for name, title in SCORES.items() if name in found}
    return known | {name: name for name in found if name not in (*SCORES, *HIDDEN)}


def _describe_marks(results: Results, corrected: Mapping[tuple[str, str], float]) -> str:
    """A legend for the stars, and which scores cannot have one."""
    n_trials, n_tests = results.environment["n_trials"], len(corrected)
    text = (
        f"* differs from {results.against}, p < {SIGNIFICANT} after Holm's correction for the {n_tests} tests of "
        f"this table (stratified approximate randomisation, two-sided, {n_trials} trials, seed "
        f"{results.environment['seed']})."
    )
    # The smallest p-value there is counts for all tests at first.
    smallest = n_tests / (n_trials + 1)
    if smallest < SIGNIFICANT:
        return text
    return f"{text} So few trials show no p below {smallest:.3f} after the correction: nothing could be marked."


def _describe_retrievals(models: list[Entry]) -> list[str]:
    """Which pairs the systems got that edit by them."""
    treatments = {False: "left out", True: "allowed, the answer itself too"}
    lines = []
    for allowed, treated in treatments.items():
        names = [one.system for one in models if one.decoding and one.decoding.allow_own_pair is allowed]
        if names:
            lines += ["", f"Pairs that share a row's source or reference were {treated}: {', '.join(names)}."]
    return lines


def _cells(entry: Entry, columns: Mapping[str, str], corrected: Mapping[tuple[str, str], float]) -> list[str]:
    """The line of a system; of a published row the scores alone are known."""
    scores = {name: entry.find(name) for name in (*columns, *DIVERSITY)}
    return [
        entry.system,
        *(format_with_interval(scores[name], corrected.get((entry.system, name), 1.0)) for name in columns),
        *("-" if (one := scores[name]) is None else f"{one.score:.{DIGITS[name]}f}" for name in DIVERSITY),
        (entry.decoding and entry.decoding.rule) or "-",
        f"{entry.model.num_parameters:,}" if entry.model else "-",
        f"{entry.speed.per_second:.1f}" if entry.speed else "-",
    ]


def format_with_interval(score: Score | None, p_value: float) -> str:
    """A score with half of its interval, starred where its p-value is small; - if there is none."""
    if score is None:
        return "-"
    if score.margin is None:
        return f"{score.score:.2f}"
    return score.format(1) + "*" * (p_value < SIGNIFICANT)


def _error(score: Score) -> list[list[float]]:
    """What `errorbar` takes: how far the interval reaches below and above."""
    low, high = score.interval or (score.score, score.score)
    return [[max(0.0, score.score - low)], [max(0.0, high - score.score)]]
