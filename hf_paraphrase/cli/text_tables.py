"""Texts out of files of any length, and rows into them, as they come."""

from __future__ import annotations

import csv
import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import check_unicode, open_text, whole_file
from ..metrics.score_files import JSON_LINES, SEPARATORS, Row, parse_object, read_columns
from .terminal import echo

__all__ = ["Lines", "check_table", "open_table", "read_texts"]

# The columns that hold the texts where nobody names one; the first that is there counts.
TEXT_COLUMNS = ("text", "source")
PARQUET = ".parquet"


class Lines:
    """The lines of standard input, as they come; one that is no UTF-8 is taken for a blank one, and told at the end.

    Args:
        errors: "replace" reads what is no UTF-8 as U+FFFD.
    """

    def __init__(self, errors: str = "strict"):
        self.errors = errors
        self.bad: list[int] = []

    def __iter__(self) -> Iterator[str]:
        # Bytes where there are any: of a stream of text, one bad byte is the end.
        for number, line in enumerate(getattr(sys.stdin, "buffer", sys.stdin), start=1):
            try:
                text = line if isinstance(line, str) else line.decode("utf-8", self.errors)
            except UnicodeDecodeError as error:
                echo(f"standard input, line {number}: {error.reason} at byte {error.start + 1}", err=True)
                self.bad.append(number)
                text = ""
            yield text.rstrip("\r\n")

    def check(self) -> None:
        """Raise InputError where a line was none."""
        if self.bad:
            raise InputError(
                f"{len(self.bad):,} lines of standard input, first line {self.bad[0]}, are no UTF-8 and were taken "
                "for blank ones; --errors replace reads them"
            )


def read_texts(path: str, column: str | None = None, errors: str = "strict") -> Iterator[str]:
    """Read the texts of a file, as they are asked for; but all of them once before, since what is wrong shows there.

    Args:
        path: `.csv` or `.tsv` with columns that the first line names, `.jsonl` or `.json` with an object a line,
            `.parquet`, or any other with a text a line.
        column: Where the texts are; None for `text` or `source`.
        errors: "replace" reads what is no UTF-8 as U+FFFD.

    Raises:
        InputError: A row without a text; the message names the file and the line.
        OSError: The file cannot be read.
    """
    if Path(path).is_file():  # what else there is, such as a named pipe, can be read once
        deque(_read(Path(path), column, errors), maxlen=0)
    texts = _read(Path(path), column, errors)
    first = next(texts, None)
    return iter(()) if first is None else chain([first], texts)


def _read(path: Path, column: str | None, errors: str) -> Iterator[str]:
    return _read_column(path, column, errors) if _is_table(path) else _read_lines(path, errors)


def _is_table(path: Path) -> bool:
    return path.suffix in (*SEPARATORS, *JSON_LINES, PARQUET)


def _read_lines(path: Path, errors: str) -> Iterator[str]:
    with open_text(path, encoding="utf-8-sig", errors=errors, newline="\n") as file:
        yield from (line.rstrip("\r\n") for line in file)


def _read_column(path: Path, column: str | None, errors: str) -> Iterator[str]:
    names = TEXT_COLUMNS if column is None else (column,)
    rows = _read_parquet(path, names) if path.suffix == PARQUET else _read_rows(path, names, errors)
    unit = "row" if path.suffix == PARQUET else "line"
    for row in rows:
        name = next((name for name in names if name in row.values), None)
        if name is None:
            there = ", ".join(row.values) or "nothing"
            raise InputError(f"{path}, {unit} {row.line}: no {' or '.join(names)}, only {there}; give --column")
        if not isinstance(row.values[name], str):
            raise InputError(f"{path}, {unit} {row.line}: `{name}` is no text: {row.values[name]!r:.100}")
        yield check_unicode(row.values[name], f"{path}, {unit} {row.line}, `{name}`", errors)


def _read_rows(path: Path, names: Sequence[str], errors: str) -> Iterator[Row]:
    newline = "" if path.suffix in SEPARATORS else "\n"
    with open_text(path, encoding="utf-8-sig", errors=errors, newline=newline) as file:
        if path.suffix in SEPARATORS:
            yield from read_columns(path, file)
        else:
            for number, line in enumerate(file, start=1):
                yield Row(number, parse_object(path, number, line, names[0], errors))


def _read_parquet(path: Path, names: Sequence[str]) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            wanted = [name for name in names if name in file.schema_arrow.names][:1]
            if not wanted:
                yield Row(1, dict.fromkeys(file.schema_arrow.names))
            batches = file.iter_batches(columns=wanted)
            yield from map(Row, count(1), chain.from_iterable(batch.to_pylist() for batch in batches))
    # Bytes that are no UTF-8 show only now, and what is damaged shows itself in all these ways.
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise InputError(f"{path} is no Parquet file that can be read: {error}") from error


def check_table(path: Path) -> None:
    """Refuse a file that `open_table` cannot write.

    Raises:
        InputError: Its name ends otherwise.
    """
    if not _is_table(path):
        raise InputError(f"--output must end in .parquet, .csv, .tsv or .jsonl, not {path.name}")


@contextmanager
def open_table(path: Path, columns: Mapping[str, str]) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Write rows to a file as they come.

    Lines are flushed at every call, so that they can be read meanwhile, and stay where the process stops. Of a Parquet
    file, each call of which is a row group, nothing can be read before its end: it is there whole or not at all.

    Args:
        path: A file that `check_table` lets pass.
        columns: Their names, and pyarrow's names of their types.

    Yields:
        What writes rows.
    """
    if path.suffix == PARQUET:
        import pyarrow
        import pyarrow.parquet

        schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
        with whole_file(path) as temporary, pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
            yield lambda rows: writer.write_table(pyarrow.Table.from_pylist(list(rows), schema)) if rows else None
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix in SEPARATORS:
            table = csv.DictWriter(file, list(columns), delimiter=SEPARATORS[path.suffix], lineterminator="\n")
            table.writeheader()
        else:
            table = JsonLines(file)

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            table.writerows(rows)
            file.flush()

        write([])
        yield write


class JsonLines:
    """Writes objects as `csv.DictWriter` writes rows."""

    def __init__(self, file: Any):
        self.file = file

    def writerows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write an object a line."""
        self.file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
