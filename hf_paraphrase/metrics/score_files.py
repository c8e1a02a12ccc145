from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ..errors import InputError
from ..files import check_unicode, open_text

__all__ = ["JSON_LINES", "SEPARATORS", "Row", "ScoredTexts", "parse_object", "read_columns", "read_scored_texts"]

JSON_LINES = (".jsonl", ".json")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
# The names of what is read, in objects and columns; the first that is there counts.
NAMES = {
    "prediction": ("prediction", "paraphrases"),
    "references": ("references", "reference", "target"),
    "source": ("source",),
}


class Row(NamedTuple):
    """A line of a file, by its number, and what it holds by name."""

    line: int
    values: dict[str, Any]


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
    errors: str = "strict",
) -> ScoredTexts:
    """Read predictions of one or several runs with their references.

    The end of a file's name says what it is: `.jsonl` or `.json` an object a line; `.csv` or `.tsv` columns, named in
    the first line; anything else a text a line. Objects and columns are read by name: `prediction`, or of
    `paraphrases`, as `hf-paraphrase paraphrase --json` writes them, the first; `references`, `reference` or `target`;
    `source`.

    Args:
        predictions: A file for each run; those with names, such as what `hf-paraphrase evaluate` writes, may hold the
            references and the sources too.
        references: Files, the first reference of each sentence in the first and so on; an empty text says that a
            sentence has no further one. Without any, the references are those of the files of predictions.
        sources: A file; None for those of the files of predictions, if any.
        errors: "replace" reads what is no UTF-8 as U+FFFD.

    Raises:
        InputError: Files of different lengths, a row without what is wanted, or no references; the message names the
            file.
        FileNotFoundError: There is no such file.
    """
    rows = {path: _read_rows(Path(path), "prediction", errors) for path in predictions}
    streams = {path: _read_rows(Path(path), "references", errors) for path in references}
    others = {} if sources is None else {sources: _read_rows(Path(sources), "source", errors)}
    _check_equal_lengths([*rows.items(), *streams.items(), *others.items()])
    runs = [_field(path, rows[path], "prediction") for path in predictions]
    if references:
        columns = [_field(path, streams[path], "references") for path in references]
        wanted = [[text for texts in row for text in texts if text] for row in zip(*columns, strict=True)]
    else:
        wanted = _shared_field(rows, "references")
    return ScoredTexts(
        runs=runs,
        references=wanted,
        sources=_shared_sources(rows) if sources is None else _field(sources, others[sources], "source"),
    )


def _shared_field(files: dict[str | os.PathLike, list[Row]], field: str) -> list[Any]:
    first, *others = files
    values = _field(first, files[first], field)
    for path in others:
        if _field(path, files[path], field) != values:
            raise InputError(f"{first} and {path} differ in their {field}: they are over other test sentences")
    return values


def _shared_sources(files: dict[str | os.PathLike, list[Row]]) -> list[str] | None:
    if all("source" in row.values for rows in files.values() for row in rows):
        return _shared_field(files, "source")
    return None


def _read_rows(path: Path, field: str, errors: str) -> list[Row]:
    """The rows of a file; in one of plain lines each is the one `field`."""
    # Spreadsheets put a mark before the first letter; `newline` keeps line ends that stand within a field or text.
    newline = "" if path.suffix in SEPARATORS else "\n"
    with open_text(path, encoding="utf-8-sig", errors=errors, newline=newline) as file:
        if path.suffix in SEPARATORS:
            rows = list(read_columns(path, file))
        else:
            rows = [Row(number, {field: line.rstrip("\r\n")}) for number, line in enumerate(file, start=1)]
    if not rows:
        raise InputError(f"{path} is empty")
    if path.suffix in JSON_LINES:
        return [Row(row.line, parse_object(path, row.line, row.values[field], errors=errors)) for row in rows]
    return rows


def read_columns(path: Path, file: TextIO) -> Iterator[Row]:
    """The rows of a CSV or TSV file, as they are read.

    Raises:
        InputError: It is damaged; the message names the line.
    """
    reader = csv.reader(file, delimiter=SEPARATORS[path.suffix], strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        for fields in reader:
            if len(fields) != len(names):
                raise InputError(f"{path}, line {reader.line_num}: {len(fields)} fields, but {len(names)} columns")
            yield Row(reader.line_num, dict(zip(names, fields, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def parse_object(
    path: Path, line: int, text: str, field: str = "prediction", errors: str = "strict"
) -> dict[str, Any]:
    """Read a line of JSON Lines.

    Args:
        path: Its file, for the error.
        line: Its number.
        text: The line.
        field: What it should have, for the error.
        errors: "replace" makes U+FFFD of what JSON can say, but Unicode cannot.

    Raises:
        InputError: It is no JSON, or no object, or a text of it no Unicode.
    """
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {line}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of too many digits
        raise InputError(f"{path}, line {line}: not JSON that can be read ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{path}, line {line}: expected an object with the field `{field}`")
    return _check_texts(row, f"{path}, line {line}", errors)


def _check_texts(value: Any, where: str, errors: str) -> Any:
    if isinstance(value, dict):
        names = [check_unicode(name, where, errors) for name in value]
        parts = zip(names, value.values(), strict=True)
        return {name: _check_texts(part, f"{where}, `{name}`", errors) for name, part in parts}
    if isinstance(value, list):
        return [_check_texts(part, where, errors) for part in value]
    return check_unicode(value, where, errors) if isinstance(value, str) else value


def _field(path: str | os.PathLike, rows: list[Row], field: str) -> list[Any]:
    """For each row one text, or of `references` a list of them."""
    values = []
    for row in rows:
        name = next((name for name in NAMES[field] if name in row.values), None)
        if name is None:
            advice = "; give --references" if field == "references" else ""
            names, there = " or ".join(NAMES[field]), ", ".join(row.values)
            raise InputError(f"{path}, line {row.line}: no {names}, only {there}{advice}")
        value = row.values[name]
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{path}, line {row.line}: no text in `{name}`")
        values.append(texts if field == "references" else texts[0])
    return values


def _check_equal_lengths(files: Sequence[tuple[str | os.PathLike, list[Row]]]) -> None:
    if len({len(rows) for _, rows in files}) > 1:
        lengths = ", ".join(f"{path} {len(rows)}" for path, rows in files)
        raise InputError(f"the files differ in length, in rows: {lengths}")
