from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError

__all__ = ["ScoredTexts", "read_scored_texts"]


@dataclass(frozen=True)
class ScoredTexts:
    """Outputs of one or several runs over the same test sentences, and what to score them against.

    Attributes:
        runs: For each run its predictions.
        references: For each test sentence its references.
        sources: The sources; None where nobody gave them.
    """

    runs: list[list[str]]
    references: list[list[str]]
    sources: list[str] | None


def read_scored_texts(
    predictions: Sequence[str | os.PathLike],
    references: Sequence[str | os.PathLike] = (),
    sources: str | os.PathLike | None = None,
) -> ScoredTexts:
    """Read predictions of one or several runs with their references.

    Args:
        predictions: A file for each run: text, a prediction on each line, or `.jsonl` as `hf-paraphrase evaluate`
            writes it, whose rows hold `prediction` and may hold `references` and `source`.
        references: Text files, the first reference of each sentence in the first and so on; an empty line says that a
            sentence has no further one. Without any, the references are those of the `.jsonl` files.
        sources: A text file; None for those of the `.jsonl` files, if any.

    Raises:
        InputError: Files of different lengths, a row without its fields, or no references; the message names the file.
        FileNotFoundError: There is no such file.
    """
    rows = {path: _read_rows(Path(path)) for path in predictions}
    streams = {path: _read_lines(Path(path)) for path in references}
    if sources is not None:
        streams[sources] = _read_lines(Path(sources))
    _check_equal_lengths({**rows, **streams})
    if references:
        # An empty line says that the sentence has no further reference.
        wanted = [[text for text in row if text] for row in zip(*map(streams.get, references), strict=True)]
    else:
        wanted = _shared_field(rows, "references")
    return ScoredTexts(
        runs=[_field(path, rows[path], "prediction") for path in predictions],
        references=wanted,
        sources=_shared_sources(rows) if sources is None else streams[sources],
    )


def _shared_field(files: dict[str | os.PathLike, list[dict[str, Any]]], field: str) -> list[Any]:
    first, *others = files
    values = _field(first, files[first], field)
    for path in others:
        if _field(path, files[path], field) != values:
            raise InputError(f"{first} and {path} differ in their {field}: they are over other test sentences")
    return values


def _shared_sources(files: dict[str | os.PathLike, list[dict[str, Any]]]) -> list[str] | None:
    if all("source" in row for rows in files.values() for row in rows):
        return _shared_field(files, "source")
    return None


def _read_rows(path: Path) -> list[dict[str, Any]]:
    lines = _read_lines(path)
    if path.suffix != ".jsonl":
        return [{"prediction": line} for line in lines]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: not JSON ({error.msg})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: expected an object with the field `prediction`")
        rows.append(row)
    return rows


def _read_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\r\n") for line in file]
    if not lines:
        raise InputError(f"{path} is empty")
    return lines


def _field(path: str | os.PathLike, rows: list[dict[str, Any]], field: str) -> list[Any]:
    for number, row in enumerate(rows, start=1):
        if field not in row:
            advice = "; give --references" if field == "references" else ""
            raise InputError(f"{path}, line {number}: no {field}{advice}")
    return [row[field] for row in rows]


def _check_equal_lengths(files: dict[str | os.PathLike, list]) -> None:
    if len({len(rows) for rows in files.values()}) > 1:
        lengths = ", ".join(f"{path} {len(rows)}" for path, rows in files.items())
        raise InputError(f"the files differ in length, in lines: {lengths}")
