"""A table of a paper made again: its systems trained and evaluated, its claims tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from datasets import DatasetDict

from ..common.errors import InputError
from ..common.files import read_json_object, read_lines, write_json
from ..datasets import load_dataset
from ..evaluation.comparison import evaluate_once
from ..evaluation.documents import evaluate_autoencoder, read_document_statistics
from ..evaluation.language_models import (
    evaluate_language_model,
    evaluate_rewriting,
    read_language_model_statistics,
    read_rewriting_statistics,
)
from ..evaluation.matches import evaluate_matcher, read_match_statistics
from ..evaluation.paraphrases import evaluate_paraphraser
from ..evaluation.results import Entry, Results, Score
from ..evaluation.scoring import Scoring
from ..generation.judges import Adequacy, load_adequacy
from ..generation.loading import load_pair_model, load_paraphraser
from ..generation.writers import Judged, ModelWriter
from ..metrics.score_files import ScoredTexts, read_scored_texts
from ..metrics.self_bleu.scoring import self_bleu
from ..metrics.significance import approximate_randomisation, bootstrap, bootstrap_difference
from ..metrics.sufficient_statistics import SufficientStatistics, divide
from ..papers.table import Claim, Measurement, Table
from ..released import RELEASED
from ..tokenization.tokenizers import SPECIAL_TOKENS
from ..training.tasks.language_model import LanguageModelConfig
from .trainings import Run, list_runs, train_all

SPLIT = "test"
SAMPLE_SEED = 1
SEED = 12345
# Without WordNet, which is a download of its own: a table is to be the same on every machine.
METRIC_OPTIONS = {"meteor": {"stages": ("exact", "stem")}}
# Of every table of texts, whatever the paper has: what copying does not raise.
ALWAYS = ("bleu", "pinc", "ibleu")
# Claims about these are not about quality.
DIVERSITY = ("pinc", "self_bleu_2", "self_bleu_4")
# BLEU, ROUGE, METEOR and judges of meaning all reward a system for changing less. So claims are judged beside the
# paper's own scores by these, the judges' where outputs were judged; some outputs of the more novel systems are
# exchanged for copies of their sources, in expectation, until all are as novel as the least novel one.
COPY_PROOF = ("ibleu", "bleu_4_equal_pinc", "open_equal_pinc", "cosine_equal_pinc")
JUDGED, BATCH_SIZE = "judged.json", 32


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    claim: Claim  # the claim
    better: Score  # score of the system that is claimed to be better, with its interval
    worse: Score  # of the other
    difference: float  # by how much the first is better; negative where it is worse
    low: float  # lower bound of its 95% interval, over test rows and trainings together
    high: float  # upper bound
    p_value: float  # that a difference as large comes about by chance

    @property
    def outcome(self) -> str:
        """`holds`, `does not hold`, or `open` where the interval has both."""
        if self.low > -self.claim.margin:
            return "holds"
        return "does not hold" if self.high < -self.claim.margin else "open"


@dataclass(frozen=True)
class MeasuredRow:
    """A system of the table."""

    system: str  # its name
    scores: tuple[Score, ...]  # means over its trainings; intervals are over test rows and trainings together
    entries: tuple[Entry, ...]  # of each training, what its evaluation says
    runs: tuple[Run, ...]  # the trainings

    def find(self, metric: str) -> Score:
        """The score of a name."""
        return next(score for score in self.scores if score.metric == metric)


@dataclass(frozen=True)
class MeasuredTable:
    """One measurement of all systems."""

    measurement: Measurement  # how they were scored
    rows: tuple[MeasuredRow, ...]  # the systems
    others: tuple[Entry, ...]  # baselines and the paper's figures
    verdicts: tuple[Verdict, ...]  # on the claims
    copy_proof: tuple[Verdict, ...]  # on the same claims by `COPY_PROOF`
    results: Results  # the record of the first evaluation, for the data and the environment


# Of a measurement the scores, by system, and the verdicts, by the paper's scores and by `COPY_PROOF`.
ScoredMeasurement = tuple[dict[str, tuple[Score, ...]], tuple[Verdict, ...], tuple[Verdict, ...]]


def reproduce(
    table: Table,
    settings: str,
    output_dir: Path,
    *,
    data_dir: Path | None = None,
    minutes: float | None = None,
    num_train_epochs: float | None = None,
    seeds: tuple[int, ...] | None = None,
    jobs: int = 1,
    device: str | None = None,
    encoder: Any = None,
    n_samples: int = 1000,
    n_trials: int = 10_000,
    report: Callable[[str], None] = lambda line: None,
) -> list[MeasuredTable]:
    """Train and evaluate the systems and test the claims, resuming where an earlier call stopped.

    Args:
        table: The table.
        settings: Their name.
        output_dir: Each system has a folder in it, each training a folder in that.
        data_dir: Folder with the corpus's published files.
        minutes: Processor minutes of each training, instead of the settings'.
        num_train_epochs: Passes over the data of each training, instead of equal minutes.
        seeds: Seeds of the trainings, instead of the settings'.
        jobs: How many trainings at a time.
        device: "cpu" or "cuda", to train and to evaluate; None for a GPU if available.
        encoder: Sentence encoder for the cosine of source and output; None leaves it out.
        n_samples: Resampled test sets for the intervals.
        n_trials: Shuffles for the p-values.
        report: Receives a line when the training of a system begins and when it ends.

    Raises:
        InputError: Unknown settings or device, both minutes and passes, a failed training, or a folder with a run of
            another recipe or budget.
    """
    chosen = table.choose(settings)
    if num_train_epochs is not None:
        if minutes is not None:
            raise InputError("--minutes and --num-train-epochs: trainings are equal in the one or in the other")
        chosen = chosen.with_equal_passes(num_train_epochs)
    runs = list_runs(chosen, output_dir, seeds or chosen.seeds)
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"--device must be cpu or cuda, not {device}")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: PyTorch finds no GPU here")
    training, judges = runs[0].recipe.training, {}
    # Before hours of training, so that a missing library and missing files show at once.
    if training.task in TEXT_TASKS:
        judges = load_judges(encoder, device)
        Scoring(_metrics(table), METRIC_OPTIONS).collect(ScoredTexts([["some text"]], [["a text"]], ["one text"]))
    path = cast(str, training.dataset)  # a mixture, which has none, is of no table
    corpus = load_dataset(path, training.dataset_name, data_dir, **training.dataset_kwargs)
    train_all(runs, chosen.minutes if minutes is None else minutes, data_dir, jobs, device, report)
    scoring = Scoring(n_samples=n_samples, n_trials=n_trials, seed=SEED)
    return [_measure(table, measurement, runs, corpus, scoring, device, judges) for measurement in table.measurements]


def _metrics(table: Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*table.metrics, *ALWAYS)))


def _measure(
    table: Table,
    measurement: Measurement,
    runs: list[Run],
    corpus: DatasetDict,
    scoring: Scoring,
    device: str | None,
    judges: Mapping[str, Any],
) -> MeasuredTable:
    evaluated = {run.folder: _evaluate(table, measurement, run, corpus, device) for run in runs}
    for run in runs if judges else ():
        judge_outputs(outputs_folder(table, measurement, run), judges)
    scores, verdicts, copy_proof = score_outputs(table, measurement, runs, scoring)
    rows = []
    for system in scores:
        own = tuple(run for run in runs if run.system == system)
        entries = tuple(evaluated[run.folder].of("model")[0] for run in own)
        rows.append(MeasuredRow(system, scores[system], entries, own))
    results = {row.system: evaluated[row.runs[0].folder] for row in rows}
    others, first = _collect_others(results), results[runs[0].system]
    return MeasuredTable(measurement, tuple(rows), others, verdicts, copy_proof, first)


def score_outputs(table: Table, measurement: Measurement, runs: Sequence[Run], scoring: Scoring) -> ScoredMeasurement:
    """Compute a measurement's scores, by system, and judge its claims; from the files of outputs in the folders of the
    trainings (`outputs_folder`) alone."""
    statistics: dict[str, dict[str, list[SufficientStatistics]]] = {}
    copies: dict[str, list[dict[str, SufficientStatistics]]] = {}
    for run in runs:
        read = READERS[measurement.evaluator or run.recipe.training.task]
        (file,) = outputs_folder(table, measurement, run).glob("*.jsonl")
        for name, found in read(table, file).items():
            statistics.setdefault(run.system, {}).setdefault(name, []).append(found)
        if read is _read_paraphrases:
            copies.setdefault(run.system, []).append(_read_copies(file))
    if copies:
        _add_equal_novelty(statistics, copies)
    scores = {
        system: tuple(_score(several, scoring) for several in own.values()) for system, own in statistics.items()
    }
    pairs = dict.fromkeys((one.better, one.worse) for one in measurement.claims if one.metric not in DIVERSITY)
    again = [Claim(*pair, name) for pair in pairs for name in COPY_PROOF if name in statistics[pair[0]]]
    verdicts, copy_proof = (
        tuple(_judge(claim, scores, statistics, scoring) for claim in claims) for claims in (measurement.claims, again)
    )
    return scores, verdicts, copy_proof


def _add_equal_novelty(
    statistics: dict[str, dict[str, list[SufficientStatistics]]],
    copies: Mapping[str, Sequence[Mapping[str, SufficientStatistics]]],
) -> None:
    """Add the scores at the PINC of the least novel system."""
    novelty = min(float(np.mean([run.score for run in own["pinc"]])) for own in statistics.values())
    for system, own in statistics.items():
        for name in copies[system][0]:
            several = zip(own[name], copies[system], own["pinc"], strict=True)
            equal = [at_equal_novelty(outputs, copied[name], pinc, novelty) for outputs, copied, pinc in several]
            own[equal[0].name] = equal


def _collect_others(results: Mapping[str, Results]) -> tuple[Entry, ...]:
    """Baselines and what papers report, each once; but one that differs by system, with the name of each."""
    found: dict[str, dict[tuple[Score, ...], tuple[str, Entry]]] = {}
    for role in ("baseline", "paper"):
        for system, one in results.items():
            for entry in one.of(role):
                found.setdefault(entry.system, {}).setdefault(entry.scores, (system, entry))
    return tuple(
        entry if len(several) == 1 else replace(entry, system=f"{entry.system} ({system})")
        for several in found.values()
        for system, entry in several.values()
    )


def _score(runs: list[SufficientStatistics], scoring: Scoring) -> Score:
    found = bootstrap(runs, n_samples=scoring.n_samples, seed=scoring.seed, resample_runs=True)
    return Score(runs[0].name, found.score, found.low, found.high, runs[0].signature)


def _judge(
    claim: Claim,
    scores: Mapping[str, tuple[Score, ...]],
    statistics: Mapping[str, Mapping[str, list[SufficientStatistics]]],
    scoring: Scoring,
) -> Verdict:
    better, worse = (statistics[name][claim.metric] for name in (claim.better, claim.worse))
    difference, low, high = bootstrap_difference(better, worse, n_samples=scoring.n_samples, seed=scoring.seed)
    if not better[0].higher_is_better:
        difference, low, high = -difference, -high, -low
    p_value = approximate_randomisation(better, worse, n_trials=scoring.n_trials, seed=scoring.seed)
    of_better, of_worse = (
        next(score for score in scores[name] if score.metric == claim.metric) for name in (claim.better, claim.worse)
    )
    return Verdict(claim, of_better, of_worse, difference, low, high, p_value)


def _evaluate(table: Table, measurement: Measurement, run: Run, corpus: DatasetDict, device: str | None) -> Results:
    """Evaluate a trained system, or reuse the result of an earlier call."""
    training = run.recipe.training
    options = _list_options(measurement, run)
    data: dict[str, Any] = {"path": training.dataset, "name": training.dataset_name, "kwargs": training.dataset_kwargs}
    data |= {"max_samples": table.max_samples, "sample_seed": table.max_samples and SAMPLE_SEED}
    folder = outputs_folder(table, measurement, run)
    settings = {"metrics": _metrics(table), "options": options, "data": data, "steps": run.final_summary["steps"]}
    kind, where = measurement.evaluator or training.task, {"output_dir": folder, "split": SPLIT, "data": data}
    make = partial(_call_evaluator, table, kind, run, corpus, device, **options, **where)
    return evaluate_once(folder, SPLIT, settings, make)


def outputs_folder(table: Table, measurement: Measurement, run: Run) -> Path:
    """Where a system's evaluation stands: of measurements that do not differ for it, in that of the first."""
    options = _list_options(measurement, run)
    alike = next(
        one
        for one in table.measurements
        if (one.evaluator, _list_options(one, run)) == (measurement.evaluator, options)
    )
    return run.folder / "-".join(["evaluation", *alike.name.split()])


def _list_options(measurement: Measurement, run: Run) -> dict[str, Any]:
    """Arguments of a system's evaluation; which pairs are allowed says nothing of one that reads none."""
    options = {**measurement.options, **measurement.row_options.get(run.system, {})}
    if run.recipe.training.task != "edit":
        options.pop("allow_own_pair", None)
    return options


def _call_evaluator(
    table: Table, kind: str, run: Run, corpus: DatasetDict, device: str | None, **options: Any
) -> Results:
    """Evaluate a trained system as those of its task are, or in the way that a measurement names."""
    rows, limit = corpus[SPLIT], table.max_samples
    if limit:
        rows = rows.shuffle(seed=SAMPLE_SEED).select(range(min(limit, len(rows))))
    if kind == "match":
        return evaluate_matcher(*load_pair_model(run.folder, device), rows, corpus.get("validation"), **options)
    loaded = load_paraphraser(run.folder, device)
    if kind == "autoencode":
        return evaluate_autoencoder(*loaded, rows, seed=SEED, **options)
    if kind == "rewriting":
        return evaluate_rewriting(*loaded, corpus[SPLIT], max_samples=table.max_samples, seed=SEED, **options)
    if kind == "language_model":
        options["objective"] = cast(LanguageModelConfig, run.recipe.training).objective
        return evaluate_language_model(*loaded, corpus[SPLIT], max_samples=table.max_samples, **options)
    options |= {"num_beams": [options.get("num_beams", 5)], "metrics": _metrics(table)}
    return evaluate_paraphraser(*loaded, rows, metric_options=METRIC_OPTIONS, **options)


def _read_paraphrases(table: Table, file: Path) -> dict[str, SufficientStatistics]:
    """Of the outputs, what judges found, and how alike those of a row are, where it has several."""
    found = Scoring(_metrics(table), METRIC_OPTIONS).collect(read_scored_texts([file]))
    found |= read_judged(file.parent, "outputs")
    rows = read_lines(file)
    if "predictions" in rows[0]:
        found |= self_bleu([row["predictions"] for row in rows], lowercase=True).statistics
    return found


def _read_copies(file: Path) -> dict[str, SufficientStatistics]:
    """Of copies of the sources, where the outputs have the same scores."""
    texts = read_scored_texts([file])
    sources = cast(list[str], texts.sources)  # a system's own outputs stand beside them
    found = Scoring(("bleu",), METRIC_OPTIONS).collect(replace(texts, runs=[sources]))
    return {"bleu_4": found["bleu_4"], **read_judged(file.parent, "copies")}


def load_judges(encoder: Any = None, device: str | None = None) -> dict[str, tuple[Adequacy, str]]:
    """The judges by the names of their scores, each with its signature: `open`, by the released model, and with a
    sentence encoder `cosine`."""
    writer = ModelWriter(*load_paraphraser(device=device))
    judges = {"open": (load_adequacy("open", writer), RELEASED)}
    if encoder is not None:
        judges["cosine"] = (
            load_adequacy("embedding", writer, encoder=encoder),
            getattr(encoder, "__name__", str(encoder)),
        )
    return judges


def judge_outputs(folder: Path, judges: Mapping[str, tuple[Adequacy, str]]) -> None:
    """Write beside the outputs in a folder how judges score them and copies of their sources, unless it is there."""
    (outputs,) = folder.glob("*.jsonl")
    record = read_json_object(folder / JUDGED) if (folder / JUDGED).is_file() else {}
    missing = {name: one for name, one in judges.items() if record.get(name, {}).get("signature") != one[1]}
    if not missing:
        return
    rows = read_lines(outputs)
    sources = [row["source"] for row in rows]
    for name, (judge, signature) in missing.items():
        texts = {"outputs": [row["prediction"] for row in rows], "copies": sources}
        record[name] = {"signature": signature}
        record[name] |= {key: _ask_judge(judge, sources, found) for key, found in texts.items()}
    write_json(folder / JUDGED, record)


def _ask_judge(judge: Adequacy, sources: Sequence[str], texts: Sequence[str]) -> list[float]:
    """A number from 0 to 1 for each text; 0 for one without words."""
    asked = [row for row, pair in enumerate(zip(sources, texts, strict=True)) if all(map(str.strip, pair))]
    scores = np.zeros(len(sources))
    scores[asked] = judge([Judged(sources[row], texts[row]) for row in asked], BATCH_SIZE)
    return scores.round(4).tolist()


def read_judged(folder: Path, of: str) -> dict[str, SufficientStatistics]:
    """The statistics of the judges' scores in a folder, `of` its "outputs" or of "copies"; none if it has none."""
    record = read_json_object(folder / JUDGED) if (folder / JUDGED).is_file() else {}
    return {
        name: SufficientStatistics.from_sentence_scores(name, found[of], found["signature"], scale=100)
        for name, found in record.items()
    }


def at_equal_novelty(
    outputs: SufficientStatistics, copies: SufficientStatistics, pinc: SufficientStatistics, novelty: float
) -> SufficientStatistics:
    """A score of outputs after so many were exchanged for copies of their sources that PINC, 0 to 100, falls to
    `novelty`.

    The share is the same for every row, and the sums are their expectations: nothing is drawn. A corpus of less
    novelty stays as it is.
    """
    widths = np.cumsum([outputs.rows.shape[1], copies.rows.shape[1]])

    def score_of_sums(sums: np.ndarray) -> np.ndarray:
        own, copied, new = np.split(sums, widths, axis=-1)
        share = np.clip(divide(np.asarray(novelty), pinc.score_of_sums(new)), 0, 1)[..., None]
        return outputs.score_of_sums(share * own + (1 - share) * copied)

    rows = np.hstack([outputs.rows, copies.rows, pinc.rows])
    signature = f"pinc:{novelty:.1f}|{outputs.signature}"
    name = f"{outputs.name}_equal_pinc"
    return replace(outputs, name=name, rows=rows, score_of_sums=score_of_sums, signature=signature)


# Their models write texts, which a table's metrics score.
TEXT_TASKS = ("paraphrase", "edit", "decompose", "adapt", "denoise")
# Of each task, or way that a measurement names, how the statistics of its scores are read from the outputs.
READERS: dict[str, Callable[[Table, Path], dict[str, SufficientStatistics]]] = {
    **dict.fromkeys(TEXT_TASKS, _read_paraphrases),
    "match": lambda table, file: read_match_statistics(file),
    "autoencode": lambda table, file: read_document_statistics(file, SPECIAL_TOKENS["unk_token"], SEED),
    "language_model": lambda table, file: read_language_model_statistics(file),
    "rewriting": lambda table, file: read_rewriting_statistics(file),
}
