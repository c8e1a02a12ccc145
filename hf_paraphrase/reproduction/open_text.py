"""The systems side by side on free text: trained on groups of sentences, measured on each kind, and the table."""

from __future__ import annotations

import json
import lzma
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.fields import check_known
from ..common.files import read_json_object, whole_file, write_json, write_text
from ..datasets import load_dataset
from ..evaluation.choices import METRICS, ScoredRows, choose_first, search_first
from ..evaluation.paraphrases import COPIED
from ..evaluation.results import Data, Entry, Group, Model, Results, Score, Speed, describe_commit, format_table
from ..evaluation.scoring import Scoring
from ..generation.paraphraser import Paraphraser
from ..generation.selection import score_by_embedding
from ..metrics.sufficient_statistics import SufficientStatistics
from ..papers.table import Settings, Trained
from ..released import RELEASED, find_checkpoint
from ..retrieval.encoders import SentenceEncoder, load_encoder
from ..training.mixture import sentences_of
from .trainings import Run, list_runs, slug, train_all

NAME = "open-text"
COLUMNS = {
    "bleu_4": "BLEU-4",
    "ibleu": "iBLEU",
    "pinc": "PINC",
    "adequacy": "cosine",
    "names_kept": "names kept",
    "numbers_kept": "numbers kept",
    "answered": "answered",
}
ANSWERS = "answers.json"

# The schedule ends with the budget, however small.
LINEAR = {"lr_scheduler_type": "linear"}
BRIEF = LINEAR | {"warmup_steps": 100}
SETTINGS = Settings(
    {
        "residual LSTM with attention": Trained("residual-lstm-open", BRIEF),
        "DNPG": Trained("dnpg-open", BRIEF),
        "copy editor": Trained("copy-editor-open", BRIEF),
        "FSET": Trained("fset-open", BRIEF),
        # These two warm up as their recipes do: with 100 steps, their perplexity was still near 95 after 1,000.
        "Transformer": Trained(
            "transformer-open", {**LINEAR, "learning_rate": 6e-4, "encoder_layers": 3, "decoder_layers": 3}
        ),
        "SSRU, deep encoder": Trained("ssru-open", LINEAR),
    },
    minutes=240,
)
VALIDATION_GROUPS = 200  # of each file
FIRST_BEAM, CHOSEN = "first beam", "Paraphraser"
NUM_BEAMS, BATCH_SIZE = 4, 16

Answer = Callable[[list[str]], list[str | None]]
# Of a system the answers to the first test texts of each kind, by way, and what it took; as JSON has it.
Record = dict[str, Any]
# The test rows of each kind, as columns `source` and `references`.
Texts = Mapping[str, Mapping[str, list]]


@dataclass(frozen=True)
class _System:
    """What is measured."""

    name: str  # in the table
    paths: Sequence[str | os.PathLike]  # of its checkpoint, or of two translators
    run: Run | None = None  # its training; None where it was not trained here
    rows: int | None = None  # how many texts of each kind it answers at most; None for all


def compare_on_open_text(
    data_files: Sequence[str] | Mapping[str, Sequence[str]],
    output_dir: Path,
    *,
    trained: Settings = SETTINGS,
    systems: Sequence[str] = (),
    minutes: float | None = None,
    seed: int = 1,
    jobs: int = 1,
    device: str | None = None,
    encoder: Any = None,
    language_model: str | None = None,
    round_trip: Sequence[str] = (),
    max_tokens_per_batch: int = 2500,
    max_samples: int = 150,
    language_model_samples: int = 20,
    n_samples: int = 1000,
    report: Callable[[str], None] = lambda line: None,
) -> Results:
    """Train the systems on the same pieces and mixture for the same time, and measure them beside others.

    Each file of groups is a kind of text. Some groups of each are held out: a test text is one sentence, its
    references are others of its group. A system answers by its first beam, and as a `Paraphraser` chooses; where it
    has no answer, the text itself is scored. What an earlier call has finished is reused.

    Args:
        data_files: Files that the corpus `groups` reads; or by split, where those of `test` are not trained on. Where
            all are of `test`, nothing is trained.
        output_dir: For trainings and answers.
        trained: The systems to train.
        systems: Names of some of them; none for all.
        minutes: Processor minutes of each training, instead of the systems' own.
        seed: Of the trainings.
        jobs: How many trainings at a time.
        device: "cpu" or "cuda" for the trainings; None for a GPU if available.
        encoder: Sentence encoder for the cosine; None leaves it out.
        language_model: Causal language model, such as a .gguf file; None leaves it out.
        round_trip: Two translators, from English to another language and back.
        max_tokens_per_batch: Of the trainings; small batches make more steps of a small budget.
        max_samples: Test texts of each kind.
        language_model_samples: How many of these the language model answers: it is slow.
        n_samples: Resampled test sets for the 95% intervals.
        report: Receives a line when a training or a system's answers begin, and when a training ends.

    Returns:
        An entry for each system and way, with a group for each kind of text.

    Raises:
        InputError: An unknown system, two files of one name, a translator without its way back, a failed training, or
            a folder with another run or other texts.
    """
    files = data_files if isinstance(data_files, Mapping) else {"train": data_files}
    if not files or files.keys() - {"train", "test"}:
        raise InputError("`data_files`: name files to train on, and with `test=` those that are only measured on")
    if len(round_trip) not in (0, 2):
        raise InputError(f"`round_trip` takes two translators, there and back, not {len(round_trip)}")
    check_known(systems, trained.systems, "`systems`", "system")
    trained = replace(trained, systems={name: trained.systems[name] for name in systems or trained.systems})
    kinds = _read_kinds(files, max_samples)
    train = files.get("train", ())
    runs = _list_runs(trained, train, output_dir, seed, max_samples, max_tokens_per_batch) if train else []
    train_all(runs, trained.minutes if minutes is None else minutes, None, jobs, device, report)
    measured = _list_systems(runs, round_trip, language_model, language_model_samples)
    judge = None if encoder is None else load_encoder(encoder)
    records = {COPIED: {"ways": {"": {kind: {"answers": rows["source"]} for kind, rows in kinds.items()}}}}
    for system in measured:
        report(f"{system.name}: answering")
        records[system.name] = _answer_once(system, kinds, output_dir / "answers" / f"{slug(system.name)}.json")
    if judge is not None:
        for record in records.values():
            _add_cosines(record, kinds, judge)
    environment = {"seed": seed, "n_samples": n_samples, "encoder": getattr(judge, "name", None)}
    environment |= describe_environment(torch.device("cpu"))
    data = Data(
        "groups", "filtered", max_samples=max_samples, rows=sum(len(rows["source"]) for rows in kinds.values())
    )
    write_json(output_dir / ANSWERS, {"texts": kinds, "systems": records})
    return Results("open_text", data, score_answers(kinds, records, n_samples), environment)


def _corpus(path: str, max_samples: int) -> dict[str, Any]:
    """How a file of groups is read and split, as fields of a recipe."""
    kwargs = {"data_files": str(Path(path).resolve()), "validation_size": VALIDATION_GROUPS, "test_size": max_samples}
    return {"dataset": "groups", "dataset_name": "filtered", "dataset_kwargs": kwargs}


def _list_runs(
    settings: Settings, files: Sequence[str], folder: Path, seed: int, max_samples: int, max_tokens_per_batch: int
) -> list[Run]:
    """The trainings, all on the same mixture, in batches of the same size."""
    mixture = [{"name": Path(path).stem, **_corpus(path, max_samples)} for path in files]
    shared = {"mixture": mixture, "max_tokens_per_batch": max_tokens_per_batch}
    systems = {name: replace(one, fields={**one.fields, **shared}) for name, one in settings.systems.items()}
    return list_runs(replace(settings, systems=systems), folder, [seed])


def _list_systems(
    runs: Sequence[Run], round_trip: Sequence[str], language_model: str | None, language_model_samples: int
) -> list[_System]:
    """What was trained here, and what it stands beside."""
    systems = [_System(run.system, [run.folder], run) for run in runs]
    systems.append(_System(RELEASED, [find_checkpoint()]))
    if round_trip:
        systems.append(_System("round trip", round_trip))
    if language_model:
        systems.append(_System(Path(language_model).stem, [language_model], rows=language_model_samples))
    return systems


def _read_kinds(files: Mapping[str, Sequence[str]], max_samples: int) -> Texts:
    """The test rows of each file; of one that is only measured on, those of which no sentence is trained on."""
    kinds: dict[str, dict[str, list]] = {}
    trained_on: set[str] = set()
    for split in ("train", "test"):
        for path in files.get(split, ()):
            kind, corpus = Path(path).stem, _corpus(path, max_samples)
            if kind in kinds:
                raise InputError(f"`data_files`: two files are called {kind}; the name tells the kind of text")
            read = load_dataset(corpus["dataset"], name=corpus["dataset_name"], **corpus["dataset_kwargs"])
            rows = read["test"]
            if split == "train":
                trained_on |= sentences_of([read["train"]])
            else:
                held = [{row["source"].casefold(), *map(str.casefold, row["references"])} for row in rows]
                rows = rows.select([place for place, texts in enumerate(held) if texts.isdisjoint(trained_on)])
            kinds[kind] = {column: list(rows[column]) for column in ("source", "references")}
    return kinds


def _load(paths: Sequence[str | os.PathLike]) -> tuple[dict[str, Answer], int]:
    """What answers in each way, and how many parameters it has."""
    loaded = [Paraphraser.from_pretrained(path, device="cpu", trust_remote_code=False) for path in paths]
    searches = [partial(search_first, one.writer, num_beams=NUM_BEAMS, batch_size=BATCH_SIZE) for one in loaded]

    def search(texts: list[str]) -> list[str | None]:
        found: list[str | None] = list(texts)
        for translate in searches:
            found = translate([text or "" for text in found])
        return found

    ways: dict[str, Answer] = {FIRST_BEAM: search}
    if len(loaded) == 1:
        ways[CHOSEN] = partial(choose_first, loaded[0], batch_size=BATCH_SIZE)
    return ways, sum(one.model.num_parameters() for one in loaded)


def _answer_once(system: _System, kinds: Texts, file: Path) -> Record:
    """Answer the texts, or reuse the answers of an earlier call; raises InputError where that had other texts."""
    texts = {kind: rows["source"][: system.rows] for kind, rows in kinds.items()}
    if file.is_file():
        record = read_json_object(file)
        if record.pop("texts") != texts:
            raise InputError(f"{file} answers other texts; remove it, or name another output folder")
        return record
    ways, parameters = _load(system.paths)
    summary = system.run.final_summary if system.run else {}
    record = {"parameters": parameters, "bytes": sum(map(_count_bytes, system.paths))}
    record["training"] = {name: summary[name] for name in ("steps", "epochs", "cpu_seconds") if name in summary}
    record["ways"] = {
        way: {kind: _answer(answer, some) for kind, some in texts.items()} for way, answer in ways.items()
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, {"texts": texts, **record})
    return record


def _answer(answer: Answer, texts: list[str]) -> Record:
    started = time.process_time()
    return {"answers": answer(texts), "cpu_seconds": round(time.process_time() - started, 3)}


def _count_bytes(path: str | os.PathLike) -> int:
    """The size of a checkpoint's weights, and of the pairs that it retrieves."""
    path = Path(path)
    files = [path] if path.is_file() else [*path.glob("*.safetensors"), *path.glob("retriever/**/*")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _fill(record: Record, texts: Sequence[str]) -> list[str]:
    """The answers to the first texts, the text itself where there is none."""
    return [answer or text for answer, text in zip(record["answers"], texts, strict=False)]


def _add_cosines(record: Record, kinds: Texts, judge: SentenceEncoder) -> None:
    """Add the cosine of each answer with its text."""
    for found in record["ways"].values():
        for kind, one in found.items():
            filled = _fill(one, kinds[kind]["source"])
            sources = kinds[kind]["source"][: len(filled)]
            scored = score_by_embedding(sources, [[text] for text in filled], judge)
            one["cosines"] = [round(cosine, 4) for (cosine,) in scored]


def score_answers(texts: Texts, records: Mapping[str, Record], n_samples: int = 1000) -> tuple[Entry, ...]:
    """Score what `ANSWERS` holds, no model needed: of each kind the texts, columns `source` and `references`, and of
    each system its record."""
    scoring = Scoring(METRICS, n_samples=n_samples)
    ways = ((name, way, record) for name, record in records.items() for way in record["ways"])
    return tuple(_score(*one, texts, scoring) for one in ways)


def _score(name: str, way: str, record: Record, texts: Texts, scoring: Scoring) -> Entry:
    found = record["ways"][way]
    sizes = {kind: len(one["answers"]) for kind, one in found.items()}
    sources, references = (
        [text for kind, size in sizes.items() for text in texts[kind][column][:size]]
        for column in ("source", "references")
    )
    filled = [text for kind, one in found.items() for text in _fill(one, texts[kind]["source"])]
    answered = [answer is not None for one in found.values() for answer in one["answers"]]
    judged = all("cosines" in one for one in found.values())
    cosines = [cosine for one in found.values() for cosine in one["cosines"]] if judged else None
    statistics = ScoredRows(sources, references).collect(filled, False, cosines, scoring)
    statistics["answered"] = SufficientStatistics.from_sentence_scores("answered", answered, "share", scale=100)
    place = np.repeat(np.arange(len(sizes)), list(sizes.values()))
    groups = []
    for number, (kind, size) in enumerate(sizes.items()):
        own = {metric: replace(one, rows=one.rows[place == number]) for metric, one in statistics.items()}
        groups.append(Group("kind", kind, size, scoring.measure(own)))
    label, counts = ", ".join(filter(None, (name, way))), {"rows": len(filled)}
    entry = Entry(label, "baseline", scoring.measure(statistics), groups=tuple(groups), counts=counts)
    if not way:
        return entry
    seconds = sum(one["cpu_seconds"] for one in found.values())
    return replace(
        entry,
        role="model",
        model=Model(name, "", record["parameters"]),
        counts=entry.counts | {"bytes": record["bytes"]},
        speed=Speed(seconds, len(filled) / seconds, "sentences"),
        training=record["training"],
    )


def write_open_text(results: Results, command: str, answers: Path, directory: Path) -> str:
    """Write `open-text.md`, `open-text.json` and `open-text-answers.json.xz` into `directory`, of what
    `compare_on_open_text` returned and the answers that it left in a folder; return the first's text."""
    directory.mkdir(parents=True, exist_ok=True)
    text = format_open_text(results, command)
    results.save(directory / f"{NAME}.json")
    write_text(directory / f"{NAME}.md", text)
    record = read_json_object(answers / ANSWERS)
    with whole_file(directory / f"{NAME}-answers.json.xz") as temporary, lzma.open(temporary, "wt", preset=9) as file:
        json.dump(record, file, ensure_ascii=False)
    return text


def format_open_text(results: Results, command: str) -> str:
    """The table over all kinds of text, and one for each, and how it came about, by which command."""
    environment, entries = results.environment, results.entries
    kinds = {group.value: group.rows for group in entries[0].groups}
    lines = ["# Systems side by side on free text", "", "## All kinds", ""]
    heads = ["rows", "sentences/s", "parameters", "MB", "core-minutes"]
    lines += _table(entries, {entry.system: entry.scores for entry in entries}, heads, _costs)
    for number, (kind, rows) in enumerate(kinds.items()):
        scores = {entry.system: entry.groups[number].scores for entry in entries}
        lines += ["", f"## {kind}, {rows} texts", "", *_table(entries, scores)]
    some = [entry for entry in entries if entry.counts["rows"] < results.data.rows]
    trained = f"; of one training each, seed {environment['seed']}" if any(one.training for one in entries) else ""
    notes = [
        f"Each kind is a file of groups of sentences (corpus `groups`, `filtered`): {', '.join(kinds)}. A test text "
        "is a sentence of a held-out group, its references are others of the group.",
        f"± is half of the 95% interval over test texts (bootstrap, {environment['n_samples']} samples){trained}.",
        "First beam: the likeliest of 4. Paraphraser: what it chooses, n = 1. Where a system has no answer, the text "
        "itself is scored. BLEU rewards copies; iBLEU (alpha 0.8) takes off what is the source's. PINC: share of "
        "n-grams that the source lacks. "
        + (f"Cosine, times 100: of text and answer, by {environment['encoder']}. " if environment["encoder"] else "")
        + "Names and numbers kept: of those in the texts.",
        "Sentences/s: by processor time of one process, so of a core. MB: weights, and pairs that are retrieved. "
        "Core-minutes: processor time of the training, validations included; - was not trained here.",
    ]
    if some:
        names = ", ".join(dict.fromkeys(entry.model.name for entry in some if entry.model))
        notes.append(f"Of fewer texts, the first of each kind: {names}. Compare with care.")
    made = (
        f"Made on {environment['device_name']} ({environment['threads']} threads), {describe_commit(environment)}, by:"
    )
    signatures = [f"- {score.metric}: `{score.signature}`" for score in entries[0].scores]
    return "\n".join([*lines, "", *notes, "", made, "", f"    {command}", "", *signatures, ""])


def _table(
    entries: Sequence[Entry], scores: Mapping[str, Sequence[Score]], heads: Sequence[str] = (), more=lambda entry: []
) -> list[str]:
    found = {name: {score.metric: score for score in some} for name, some in scores.items()}
    names = [name for name in COLUMNS if any(name in some for some in found.values())]
    rows = ([one.system, *(_format(found[one.system].get(name)) for name in names), *more(one)] for one in entries)
    return format_table(["system", *(COLUMNS[name] for name in names), *heads], rows)


def _format(score: Score | None) -> str:
    if score is None:
        return "-"
    # Too few texts have a name or a number for resampled ones to tell anything.
    return f"{score.score:.1f}" if score.metric.endswith("_kept") else score.format(1)


def _costs(entry: Entry) -> list[str]:
    rows = f"{entry.counts['rows']:,}"
    if entry.model is None or entry.speed is None:
        return [rows, "-", "-", "-", "-"]
    minutes = f"{entry.training['cpu_seconds'] / 60:.1f}" if entry.training else "-"
    size = [f"{entry.model.num_parameters:,}", f"{entry.counts['bytes'] / 1e6:.1f}"]
    return [rows, f"{entry.speed.per_second:.1f}", *size, minutes]
