"""A table made again, as Markdown, as JSON and as a picture of how its systems learnt."""

from __future__ import annotations

import importlib.util
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..common.files import whole_file, write_json, write_text
from ..evaluation.results import Entry, describe_commit, format_table, join_distinct
from ..papers.table import Table
from ..training.reporting import plot_learning_curves
from .tables import JUDGED, MeasuredRow, MeasuredTable, Verdict, outputs_folder

PERCENTAGES: tuple[str, ...] = ("bleu", "rouge", "meteor", "ter", "pinc", "ibleu", "embedding", "self_bleu")
PERCENTAGES += ("content_words", "copied", "open", "cosine")
# Of a training, what the JSON file says.
SUMMARIZED = ("num_parameters", "steps", "epochs", "cpu_seconds")


def write_reproduction(table: Table, measured: list[MeasuredTable], command: str, directory: Path) -> str:
    """Write `NAME.md`, `NAME.json`, `NAME-outputs.tar.xz` and, with matplotlib, `NAME.png` into `directory`, from what
    `reproduce` returned; return the first's text."""
    directory.mkdir(parents=True, exist_ok=True)
    text = format_reproduction(table, measured, command)
    record = {"table": table.name, "title": table.title, "command": command, "measured": list(map(_as_json, measured))}
    write_json(directory / f"{table.name}.json", record)
    write_text(directory / f"{table.name}.md", text)
    pack_outputs(table, measured, directory / f"{table.name}-outputs.tar.xz")
    if importlib.util.find_spec("matplotlib"):
        first = {row.system: row.runs[0].final_summary for row in measured[0].rows}
        plot_learning_curves(first, directory / f"{table.name}.png")
    return text


def format_reproduction(table: Table, measured: list[MeasuredTable], command: str) -> str:
    """The table as Markdown: for each measurement its rows and its verdicts, then how all of it came about."""
    data, environment = measured[0].results.data, measured[0].results.environment
    seeds = sorted({run.seed for row in measured[0].rows for run in row.runs})
    lines = [f"# {table.title}", ""]
    for one in measured:
        if name := one.measurement.name:
            lines += [f"## {name[:1].upper()}{name[1:]}", ""]
        lines += [*_format_rows(one), ""]
        lines += [f"- {format_verdict(verdict)}" for verdict in one.verdicts] + [""] * bool(one.verdicts)
        lines += _format_copy_proof(one)
    signatures = {score.metric: score.signature for row in measured[0].rows for score in row.scores}
    return "\n".join(
        [
            *lines,
            f"{data.label}. Seeds of trainings: {join_distinct(seeds)}. "
            "Scores are means over them. ± is half of the 95% interval, over test rows and "
            "trainings together (bootstrap). A claim holds, or does not, where the interval of the difference is on "
            "one side of zero, or of the margin that it allows; else it is open. p: stratified approximate "
            "randomisation, two-sided. Passes over the training data. Core-minutes: processor time of a training, "
            "validations included."
            f"{_format_limits(measured[0].rows)}",
            "",
            f"Made on {environment['device']} ({environment['threads']} threads in evaluation), "
            f"{describe_commit(environment)}, by:",
            "",
            f"    {command}",
            "",
            f"All outputs stand in `{table.name}-outputs.tar.xz`.",
            "",
            *(f"- {metric}: `{signature}`" for metric, signature in signatures.items() if signature),
            "",
        ]
    )


def _format_copy_proof(measured: MeasuredTable) -> list[str]:
    """The claims in two columns: by the paper's scores, and by those that copying does not raise."""
    if not measured.copy_proof:
        return []
    lines = ["| claimed | by the paper's score | by scores that copying does not raise |", "|---|---|---|"]
    for pair in dict.fromkeys((one.claim.better, one.claim.worse) for one in measured.copy_proof):
        columns = (
            "; ".join(_shorten(one) for one in verdicts if (one.claim.better, one.claim.worse) == pair)
            for verdicts in (measured.verdicts, measured.copy_proof)
        )
        lines.append(f"| {' > '.join(pair)} | {' | '.join(columns)} |")
    novelty = min(row.find("pinc").score for row in measured.rows)
    note = (
        f"`_equal_pinc`: so many outputs are exchanged for copies of their sources that each system's PINC is that of "
        f"the least novel one, {novelty:.1f}. `open` and `cosine`: 100 times what a judge says of source and output."
    )
    return [*lines, "", note, ""]


def _shorten(verdict: Verdict) -> str:
    digits = _digits(verdict.claim.metric)
    low, high = (f"{value:.{digits}f}" for value in (verdict.low, verdict.high))
    return f"{verdict.claim.metric} {verdict.difference:+.{digits}f} ({low} to {high}): {verdict.outcome}"


def _format_limits(rows: Sequence[MeasuredRow]) -> str:
    limited: dict[int, list[str]] = {}
    for row in rows:
        if limit := row.runs[0].max_steps:
            limited.setdefault(limit, []).append(row.system)
    return "".join(f" At most {limit:,} steps: {'; '.join(systems)}." for limit, systems in limited.items())


def format_verdict(verdict: Verdict) -> str:
    """A claim with the measurements: `A > B in bleu_4: 31.2 ± 0.8 against 30.1 ± 0.8, …: holds`."""
    digits = _digits(verdict.claim.metric)
    difference, low, high = (f"{value:.{digits}f}" for value in (verdict.difference, verdict.low, verdict.high))
    return (
        f"claimed: {verdict.claim}; here: {verdict.better.format(digits)} against {verdict.worse.format(digits)}, "
        f"better by {difference} ({low} to {high}), p = {verdict.p_value:.2g}: **{verdict.outcome}**"
    )


def _format_rows(measured: MeasuredTable) -> list[str]:
    metrics = [score.metric for score in measured.rows[0].scores]

    def score_cells(row: MeasuredRow | Entry) -> list[str]:
        scores = [row.find(metric) for metric in metrics]
        return ["-" if score is None else score.format(_digits(score.metric)) for score in scores]

    lines = []
    for row in measured.rows:
        summaries = [run.final_summary for run in row.runs]
        parameters, steps = summaries[0]["num_parameters"], join_distinct(f"{one['steps']:,}" for one in summaries)
        passes = join_distinct(f"{summary['epochs']:.2f}" for summary in summaries)
        minutes = join_distinct(f"{summary['cpu_seconds'] / 60:.0f}" for summary in summaries)
        lines.append([row.system, *score_cells(row), f"{parameters:,}", steps, passes, minutes])
    lines += [[entry.label(), *score_cells(entry), *4 * "-"] for entry in measured.others]
    return format_table(["system", *metrics, "parameters", "steps", "passes", "core-minutes"], lines)


def _digits(metric: str) -> int:
    """Behind the point: one of what goes up to 100, three of what is about 1."""
    return 1 if metric.startswith(PERCENTAGES) else 3


def _as_json(measured: MeasuredTable) -> dict[str, Any]:
    return {
        "measurement": measured.measurement.name,
        "rows": [
            {
                "system": row.system,
                "scores": [asdict(score) for score in row.scores],
                "runs": [
                    {
                        "seed": run.seed,
                        "recipe": asdict(run.recipe),
                        **{name: run.final_summary[name] for name in SUMMARIZED},
                        "environment": run.final_summary["environment"],
                        "scores": [asdict(score) for score in entry.scores],
                    }
                    for run, entry in zip(row.runs, row.entries, strict=True)
                ],
            }
            for row in measured.rows
        ],
        "verdicts": list(map(_verdict_as_json, measured.verdicts)),
        "copy_proof": list(map(_verdict_as_json, measured.copy_proof)),
    }


def _verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    return {"claim": str(verdict.claim), "outcome": verdict.outcome, **asdict(verdict)}


def pack_outputs(table: Table, measured: Sequence[MeasuredTable], path: Path) -> None:
    """Write the outputs of all trainings, with what judges found, into a file that is the same whenever they are.

    Labelled pairs are written without their texts.
    """
    runs = [run for row in measured[0].rows for run in row.runs]
    folders = dict.fromkeys(outputs_folder(table, one.measurement, run) for one in measured for run in runs)
    root = runs[0].folder.parents[1]
    with whole_file(path) as temporary, tarfile.open(temporary, "w:xz", preset=9) as archive:
        kept = (file for folder in folders for file in (*folder.glob("*.jsonl"), *folder.glob(JUDGED)))
        for file in sorted(kept):
            member = tarfile.TarInfo(file.relative_to(root).as_posix())
            content = leave_out_pairs(file.read_bytes())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def leave_out_pairs(lines: bytes) -> bytes:
    """Outputs without the two sentences that a matcher labelled: its scores need labels alone, and the texts are the
    corpus's to share. Any other file stays as it is."""
    # Quotation marks within a text are escaped, so this is a key.
    if b'"sentence1":' not in lines:
        return lines
    rows = map(json.loads, filter(None, lines.split(b"\n")))
    kept = ({name: value for name, value in row.items() if not name.startswith("sentence")} for row in rows)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept).encode()
