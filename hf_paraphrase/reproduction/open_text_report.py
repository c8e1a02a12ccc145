"""The table of systems on free text, as Markdown and as JSON, with the answers behind it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..common.files import read_json_object, whole_file, write_text
from ..evaluation.results import Entry, Results, Score, describe_run, format_table
from .open_text import ANSWERS

__all__ = ["format_open_text", "unpack_answers", "write_open_text"]

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


def write_open_text(results: Results, command: str, answers: Path, directory: Path) -> str:
    """Write `open-text.md`, `open-text.json` and `open-text-answers.json.xz` into `directory`; return the first's
    text.

    Args:
    results: What `compare_on_open_text` returned.
    command: The one that made it.
    answers: The folder in which it left the answers.
    directory: Where the files go.
    """
    directory.mkdir(parents=True, exist_ok=True)
    text = format_open_text(results, command)
    results.save(directory / f"{NAME}.json")
    write_text(directory / f"{NAME}.md", text)
    record = read_json_object(answers / ANSWERS)
    with whole_file(directory / f"{NAME}-answers.json.xz") as temporary, lzma.open(temporary, "wt", preset=9) as file:
        json.dump(record, file, ensure_ascii=False)
    return text


def unpack_answers(directory: Path) -> dict[str, dict]:
    """The arguments of `score_answers`, `texts` and `systems`, that `write_open_text` packed."""
    with lzma.open(directory / f"{NAME}-answers.json.xz", "rt", encoding="utf-8") as file:
        return json.load(file)


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
    made = f"Made on {environment['device_name']} ({environment['threads']} threads), {describe_run(environment)}, by:"
    signatures = [f"- {score.metric}: `{score.signature}`" for score in entries[0].scores]
    return "\n".join([*lines, "", *notes, "", made, "", f"    {command}", "", *signatures, ""])


def _table(
    entries: Sequence[Entry], scores: Mapping[str, Sequence[Score]], heads: Sequence[str] = (), more=lambda entry: []
) -> list[str]:
    found = {name: {score.metric: score for score in some} for name, some in scores.items()}
    names = [name for name in COLUMNS if any(name in some for some in found.values())]
    return format_table(
        ["system", *(COLUMNS[name] for name in names), *heads],
        (
            [entry.system, *(_format(found[entry.system].get(name)) for name in names), *more(entry)]
            for entry in entries
        ),
    )


def _format(score: Score | None) -> str:
    if score is None:
        return "-"
    # Too few texts have a name or a number for resampled ones to tell anything.
    interval = "" if score.metric.endswith("_kept") or score.margin is None else f" ± {score.margin:.1f}"
    return f"{score.score:.1f}{interval}"


def _costs(entry: Entry) -> list[str]:
    rows = f"{entry.counts['rows']:,}"
    if entry.model is None or entry.speed is None:
        return [rows, "-", "-", "-", "-"]
    minutes = f"{entry.training['cpu_seconds'] / 60:.1f}" if entry.training else "-"
    size = [f"{entry.model.num_parameters:,}", f"{entry.counts['bytes'] / 1e6:.1f}"]
    return [rows, f"{entry.speed.per_second:.1f}", *size, minutes]
