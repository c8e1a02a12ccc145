"""Texts out of files of any length, and rows into them, as they come."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import open_text, whole_file
from ..metrics.score_files import JSON_LINES, SEPARATORS, Row, parse_object, read_columns

__all__ = ["check_table", "open_table", "read_texts"]

# The columns that hold the texts where nobody names one; the first that is there counts.
TEXT_COLUMNS = ("text", "source")
PARQUET = ".parquet"


def read_texts(path: str, column: str | None = None) -> Iterator[str]:
    """Read the texts of a file, as they are asked for; but the first one now, since what is wrong shows there.

    Args:
        path: `.csv` or `.tsv` with columns that the first line names, `.jsonl` or `.json` with an object a line,
            `.parquet`, or any other with a text a line; `-` for the lines of standard input.
        column: Where the texts are; None for `text` or `source`.

    Raises:
        InputError: A row without a text; the message names the file and the line.
        OSError: The file cannot be read.
    """
    texts = _read_lines(path) if path == "-" or not _is_table(Path(path)) else _read_column(Path(path), column)
    first = next(texts, None)
    return iter(()) if first is None else chain([first], texts)


def _is_table(path: Path) -> bool:
    return path.suffix in (*SEPARATORS, *JSON_LINES, PARQUET)


def _read_lines(path: str) -> Iterator[str]:
    if path == "-":
        yield from (line.rstrip("\r\n") for line in sys.stdin)
    else:
        with open_text(path, encoding="utf-8-sig", newline="\n") as file:
            yield from (line.rstrip("\r\n") for line in file)


def _read_column(path: Path, column: str | None) -> Iterator[str]:
    names = TEXT_COLUMNS if column is None else (column,)
    rows = _read_parquet(path, names) if path.suffix == PARQUET else _read_rows(path, names)
    unit = "row" if path.suffix == PARQUET else "line"
    for row in rows:
        name = next((name for name in names if name in row.values), None)
        if name is None:
            there = ", ".join(row.values) or "nothing"
            raise InputError(f"{path}, {unit} {row.line}: no {' or '.join(names)}, only {there}; give --column")
        if not isinstance(row.values[name], str):
            raise InputError(f"{path}, {unit} {row.line}: `{name}` is no text: {row.values[name]!r:.100}")
        yield row.values[name]


def _read_rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    with open_text(path, encoding="utf-8-sig", newline="" if path.suffix in SEPARATORS else "\n") as file:
        if path.suffix in SEPARATORS:
            yield from read_columns(path, file)
        else:
            for number, line in enumerate(file, start=1):
                yield Row(number, parse_object(path, number, line, names[0]))


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
    except pyarrow.ArrowInvalid as error:
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
