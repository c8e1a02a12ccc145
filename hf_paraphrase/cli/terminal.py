"""What commands read and print: texts of files and standard input, rows, and lines without control characters."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from ..common.errors import InputError
from ..common.files import bounded_lines, whole_file
from ..common.spreadsheet_cells import csv_writer, quote_formulas
from ..common.text_tables import TextTable

# The columns that hold the texts where nobody names one; the first that is there counts.
TEXT_COLUMNS = ("text", "source")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
WRITTEN = (".parquet", *DELIMITERS, ".jsonl", ".json")
# All control characters but tabs and line ends; `score` prints the better of two in bold.
CONTROLS = re.compile(r"(?!\x1b\[[01]m)[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_format_raw_warning = warnings.formatwarning


def make_printable(text: str) -> str:
    """Write the control characters of a text as JSON does, `\\u001b` for an escape, but for tabs and line ends."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str = "", *, err: bool = False, nl: bool = True, is_data: bool = False) -> None:
    """Print a text without control characters; of data, only in terminals: piped data stay as they are."""
    is_raw = is_data and not sys.stdout.isatty()
    # `color=True`: typer would drop escape sequences where standard output is not a terminal.
    typer.echo(text if is_raw else make_printable(text), err=err, nl=nl, color=True if is_raw else None)


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """A line for each row, in which every column has the width of its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


class PrintableRecord(logging.LogRecord):
    """A line of a log without control characters. The server's have colours, and quote no file."""

    def getMessage(self) -> str:  # noqa: N802 (the name that logging gives it)
        """The message, its arguments put in."""
        message = super().getMessage()
        return message if self.name.startswith("uvicorn") else make_printable(message)


def print_logs_safely() -> None:
    """Have all logs and warnings of this process print no control characters: they quote files, too."""
    logging.setLogRecordFactory(PrintableRecord)
    warnings.formatwarning = _format_warning


def _format_warning(*args, **kwargs) -> str:
    return make_printable(_format_raw_warning(*args, **kwargs))


class Lines:
    """The lines of standard input, as they come. Invalid UTF-8 counts as a blank line and is reported at the end."""

    def __init__(self, errors: str = "strict"):
        self.errors = errors
        self.bad: list[int] = []

    def __iter__(self) -> Iterator[str]:
        # Bytes if there are any: of a stream of text, one bad byte is the end.
        lines = bounded_lines(getattr(sys.stdin, "buffer", sys.stdin), "standard input")
        for number, line in enumerate(lines, start=1):
            try:
                text = line if isinstance(line, str) else line.decode("utf-8", self.errors)
                text = text.removeprefix("\ufeff") if number == 1 else text  # Windows begins a stream with this mark
            except UnicodeDecodeError as error:
                echo(f"standard input, line {number}: {error.reason} at byte {error.start + 1}", err=True)
                self.bad.append(number)
                text = ""
            yield text.rstrip("\r\n")

    def check(self) -> None:
        """Raise InputError where a line was none."""
        if self.bad:
            raise InputError(
                f"{len(self.bad):,} lines of standard input, first line {self.bad[0]}, are not valid UTF-8 and were "
                "read as blank; --errors replace reads them"
            )


def read_texts(path: str, column: str | None = None, errors: str = "strict") -> Iterator[str]:
    """Read the texts of a file lazily, after a first pass that checks all of it.

    Args:
        path: A table (`text_tables`), or any other file with a text a line.
        column: Where the texts are; None for `text` or `source`.
        errors: "replace" reads invalid UTF-8 as U+FFFD.

    Raises:
        InputError: A row without that column, or with a cell that is not text; the message names file and line. A
            missing cell is an empty text.
        OSError: The file cannot be read.
    """
    if Path(path).is_file():  # what else there is, such as a named pipe, can be read once
        deque(read_numbered_texts(path, column, errors), maxlen=0)
    texts = (text for _, text in read_numbered_texts(path, column, errors))
    first = next(texts, None)
    return iter(()) if first is None else chain([first], texts)


def read_numbered_texts(
    path: str | os.PathLike, column: str | None = None, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Read the texts of a file lazily, each with its line number (row number in Parquet), as `read_texts` does."""
    table = TextTable(Path(path), errors=errors)
    names = TEXT_COLUMNS if column is None else (column,)
    if table.path.is_file():
        table.check_columns(names, "--column")
    for row in table.rows(names):
        yield row.line, table.text(row, table.column(row, names, "; give --column"))


def check_table(path: Path) -> None:
    """Refuse a file that `open_table` cannot write, by the ending of its name."""
    if path.suffix.lower() not in WRITTEN:
        raise InputError(f"--output must end in .parquet, .csv, .tsv or .jsonl, not {path.name}")


@contextmanager
def open_table(
    path: Path, columns: Mapping[str, str], safe_cells: bool | None = None
) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Write rows to a file as they come, by what is yielded.

    Lines are flushed at every call, so that they can be read meanwhile, and stay where the process stops. Of a Parquet
    file, each call of which is a row group, nothing can be read before its end: it is there whole or not at all.

    Args:
        path: A file that `check_table` lets pass.
        columns: Their names, and pyarrow's names of their types.
        safe_cells: Write an apostrophe before texts that a spreadsheet would run as a formula; None does so in csv
            files, from whose rows `TextTable` takes it away again.
    """
    kind = path.suffix.lower()
    if kind == ".parquet":
        import pyarrow
        import pyarrow.parquet

        schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
        with whole_file(path) as temporary, pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
            yield lambda rows: writer.write_table(pyarrow.Table.from_pylist(list(rows), schema)) if rows else None
        return
    is_safe = kind == ".csv" if safe_cells is None else safe_cells and kind in DELIMITERS
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv_writer(file, list(columns), DELIMITERS[kind]) if kind in DELIMITERS else None

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            rows = list(map(quote_formulas, rows)) if is_safe else rows
            if table is None:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            else:
                table.writerows(list(map(_join_lines, rows)) if kind == ".tsv" else rows)
            file.flush()

        write([])
        yield write


def _join_lines(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for tsv, in which a line is a row: line ends inside of texts become spaces."""
    return {name: " ".join(value.splitlines()) if isinstance(value, str) else value for name, value in row.items()}
