"""Rows of text files, read the same way by every command: csv, tsv, JSON Lines, a JSON array, Parquet, plain lines.

A cell is the literal text in the file; only an empty cell is missing. In tsv a line is a row, so a stray quote costs
nothing. Unreadable input raises InputError with file, line and column.

Not supported: files without a header, encodings other than UTF-8, Excel workbooks.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, cast

from .errors import InputError
from .files import bounded_lines, check_unicode, ends_lines_in_returns, open_plain_or_gzipped, open_text
from .spreadsheet_cells import unquote_formulas

KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
KINDS |= {".parquet": "parquet", ".txt": "txt"}
ENDINGS = ", ".join(KINDS)
# Spreadsheets set to most European languages write semicolons. That which makes the most cells of the header counts,
# of equal ones the first.
DELIMITERS = (",", ";", "\t", "|")
# A quoted cell that is longer, in characters, has lost its closing quote.
LONGEST_CELL = 16 << 20
ROWS_AT_ONCE = 1000
# So many bytes show how a file ends its lines.
START = 1 << 16
# Files of a folder that tell of a data set or model and hold no rows.
IGNORED = ("config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
# The column of a plain text file.
LINE = "text"
WHITESPACE = re.compile(r"\s*")
# A first line that names the csv delimiter for spreadsheets.
DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)

# The default of 128 KiB is below what a cell with a document holds, and the limit is one for the process.
csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))

# Called with file, line and problem for each row that cannot be read.
Reject = Callable[[Path, int, str], None]


class Row(NamedTuple):
    """A row, the line (of Parquet the row, from 1) that it begins on, and its cells by column."""

    line: int
    values: dict[str, Any]


def table_kind(path: str | os.PathLike) -> str | None:
    """The kind of a file by its ending, in any case and less `.gz`; None for an ending that no reader here knows."""
    return KINDS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def find_tables(folder: Path) -> list[Path]:
    """All tables under a folder except hidden ones, or else its plain text files; InputError without any."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in IGNORED)
    files = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    tables = [path for path in files if table_kind(path) not in (None, "txt")]
    tables = tables or [path for path in files if table_kind(path) == "txt"]
    if not tables:
        raise InputError(f"{folder} has no file that ends in {ENDINGS}")
    return tables


def expand_globs(pattern: str | os.PathLike) -> list[Path]:
    """The files that a path or glob pattern names; FileNotFoundError if there is none."""
    path = Path(pattern).expanduser()
    if path.is_file():  # whose name may hold brackets
        return [path]
    root = Path(path.anchor or ".")
    relative = str(path.relative_to(path.anchor)) if path.anchor else str(path)
    found = sorted(one for one in root.glob(relative) if one.is_file()) if re.search(r"[*?\[]", relative) else []
    if not found:
        raise FileNotFoundError(f"there is no file {path}")
    return found


@dataclass(frozen=True)
class TextTable:
    """A file of rows.

    Args:
        path: The file; every kind but Parquet may be gzipped.
        kind: One of the kinds of `table_kind`; None to decide by the ending; files with other endings are plain lines.
        delimiter: Of csv; None for the one that the header shows.
        errors: "replace" reads invalid UTF-8 as U+FFFD.
    """

    path: Path
    kind: str | None = None
    delimiter: str | None = None
    errors: str = "strict"

    def __post_init__(self):
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "kind", self.kind or table_kind(self.path) or "txt")

    def place(self, line: int) -> str:
        """How errors name a row."""
        return f"{self.path}, {'row' if self.kind == 'parquet' else 'line'} {line}"

    def columns(self, lines: Iterable[tuple[int, str]] | None = None) -> list[str] | None:
        """The names of the columns, which are in `lines` if given; None where every row brings its own.

        Raises:
            InputError: A duplicate column name, or no header.
        """
        if self.kind in ("jsonl", "json"):
            return None
        if self.kind == "txt":
            return [LINE]
        if self.kind == "parquet":
            return self.check_names(list(self.parquet_names()))
        if lines is not None:
            return next(self._read_cells(lines, self._refuse)).values["columns"]
        with self._open() as opened:
            return self.columns(opened)

    def check_columns(self, names: Sequence[str], option: str = "") -> None:
        """Raise InputError for a file without any of these columns; the message lists those that exist."""
        there = self.columns()
        if self.kind == "txt" and option and LINE not in names:
            raise InputError(
                f"{option}: {self.path} has no columns, only lines; only {ENDINGS.replace(', .txt', '')} have"
            )
        if there is not None and not any(name in there for name in names):
            raise InputError(self._missing(str(self.path), names, there))

    def rows(
        self,
        columns: Sequence[str] | None = None,
        lines: Iterable[tuple[int, str]] | None = None,
        reject: Reject | None = None,
    ) -> Iterator[Row]:
        """Read the rows; blank lines are skipped, except in plain text.

        Args:
            columns: Of Parquet only these are read.
            lines: The lines of the file with their numbers; None to open it.
            reject: Called for each damaged row, which is then left out; None to raise InputError.

        Raises:
            InputError: A row that cannot be read; the message names file and line.
        """
        reject = reject or self._refuse
        if self.kind == "parquet":
            yield from self._read_parquet(columns)
        elif lines is not None:
            yield from self._read_lines(lines, reject)
        else:
            with self._open() as opened:
                yield from self._read_lines(opened, reject)

    def column(self, row: Row, names: Sequence[str], advice: str = "") -> str:
        """The first of these columns that a row has; InputError if it has none."""
        for name in names:
            if name in row.values:
                return name
        raise InputError(self._missing(self.place(row.line), names, row.values) + advice)

    def text(self, row: Row, name: str) -> str:
        """The text of a cell, empty where it is missing; InputError names the type of a cell that is not text."""
        value = row.values.get(name)
        if value is None:
            return ""
        where = f"{self.place(row.line)}, column `{name}`"
        if not isinstance(value, str):
            raise InputError(f"{where}: expected text, not {_type_name(value)}: {value!r:.100}")
        return check_unicode(value, where, self.errors)

    def texts(self, row: Row, name: str) -> list[str]:
        """The texts of a cell that may hold a list of them, without empty ones; errors as in `text`."""
        value = row.values.get(name)
        values = value if isinstance(value, list) else [value]
        return [text for one in values if (text := self.text(Row(row.line, {name: one}), name))]

    def check_names(self, names: list[str]) -> list[str]:
        """The names, or InputError where one comes twice."""
        twice = _first_double(name for name in names if name)
        if twice is not None:
            raise InputError(f"{self.path}: two columns are called `{twice}`; rename one")
        return names

    def parquet_names(self) -> list[str]:
        """The column names in the schema of a Parquet file."""
        import pyarrow.parquet as pq

        with refusing_damage(f"{self.path} is not a Parquet file that can be read"):
            return pq.read_schema(self.path).names

    def _missing(self, where: str, names: Sequence[str], there: Iterable[str]) -> str:
        wanted = " or ".join(f"`{name}`" for name in names)
        return f"{where}: no column {wanted}; there are: {', '.join(filter(None, there)) or 'none'}"

    def _refuse(self, path: Path, line: int, problem: str) -> None:
        raise InputError(f"{path}, line {line}: {problem}")

    @contextmanager
    def _open(self) -> Iterator[Iterator[tuple[int, str]]]:
        # In csv a carriage return ends a line; elsewhere it is a character of a text, unless no line ends otherwise.
        newline = "" if self.kind == "csv" or self._ends_lines_in_returns() else "\n"
        with open_text(self.path, encoding="utf-8-sig", errors=self.errors, newline=newline) as file:
            yield enumerate(bounded_lines(file, self.path), start=1)

    def _ends_lines_in_returns(self) -> bool:
        if not self.path.is_file():  # a named pipe, which can be read once
            return False
        with suppress(InputError), open_plain_or_gzipped(self.path) as file:
            return ends_lines_in_returns(file.read(START))
        return False  # damaged, which the reader says

    def _read_lines(self, lines: Iterable[tuple[int, str]], reject: Reject) -> Iterator[Row]:
        if self.kind in ("csv", "tsv"):
            rows = self._read_cells(lines, reject)
            next(rows)
            yield from rows
        elif self.kind == "txt":
            yield from (Row(number, {LINE: line.rstrip("\r\n")}) for number, line in lines)
        else:
            lines = iter(lines)
            first = next(((number, line) for number, line in lines if line.strip()), None)
            lines = iter(()) if first is None else chain([first], lines)
            is_array = self.kind == "json" and first is not None and first[1].lstrip().startswith("[")
            yield from (self._read_array if is_array else self._read_objects)(lines, reject)

    def _read_cells(self, lines: Iterable[tuple[int, str]], reject: Reject) -> Iterator[Row]:
        """The rows of csv and tsv, after a first one whose `columns` are the names in the header."""
        lines = iter(lines)
        filled = ((number, line) for number, line in lines if line.strip("\r\n "))
        first, told = next(filled, None), None
        if first and self.kind == "csv" and (told := DELIMITER_LINE.fullmatch(first[1])):
            first = next(filled, None)
        if first is None:
            raise InputError(f"{self.path} is empty: its first line must name the columns")
        if "\0" in first[1]:
            raise InputError(f"{self.path}, line {first[0]}: it has null characters, as UTF-16 has: save it as UTF-8")
        shown = told[1] if told else _find_delimiter(first[1])
        delimiter = "\t" if self.kind == "tsv" else self.delimiter or shown
        records = split_records(chain([first], lines), delimiter, over_lines=self.kind == "csv")
        names = self.check_names([name.strip() for name in next(records)[1]])
        yield Row(first[0], {"columns": [name for name in names if name]})
        for number, cells in records:
            if len(cells) == len(names):
                plain = unquote_formulas(names, cells) if self.kind == "csv" else cells
                # Nobody can ask for a column without a name, such as the index that pandas writes.
                yield Row(number, {name: cell for name, cell in zip(names, plain, strict=True) if name})
            else:
                reject(
                    self.path,
                    number,
                    f"{len(cells)} cells for {len(names)} columns; quote cells that hold the delimiter",
                )

    def _read_objects(self, lines: Iterable[tuple[int, str]], reject: Reject) -> Iterator[Row]:
        for number, line in lines:
            if line.strip():
                yield from self._parse_object(number, partial(_decode_line, line), reject)

    def _read_array(self, lines: Iterable[tuple[int, str]], reject: Reject) -> Iterator[Row]:
        numbered = list(lines)
        number, text = numbered[0][0], "".join(line for _, line in numbered)
        place = seen = cast(re.Match, WHITESPACE.match(text)).end() + 1
        while True:
            place = cast(re.Match, WHITESPACE.match(text, place)).end()
            number, seen = number + text.count("\n", seen, place), place
            if text[place : place + 1] == "]":
                return
            end = yield from self._parse_object(number, partial(DECODER.raw_decode, text, place), reject)
            if end is None:  # what is not JSON has no end behind which the next item would begin
                return
            place = cast(re.Match, WHITESPACE.match(text, end)).end()
            if text[place : place + 1] not in (",", "]"):
                return reject(self.path, number, "the array is not closed, or a comma is missing")
            place += text[place] == ","

    def _parse_object(
        self, line: int, decode: Callable[[], tuple[Any, int]], reject: Reject
    ) -> Generator[Row, None, int | None]:
        """The row that `decode` gives, if it does; returns the place behind it."""
        end = None
        try:
            value, end = decode()
            values = self._check_texts(value, "its names")
        except InputError as error:
            reject(self.path, line, str(error))
        except json.JSONDecodeError as error:
            layout = "; a .json file holds an array of objects or an object a line" if self.kind == "json" else ""
            reject(self.path, line, f"not JSON ({error.msg}){layout}")
        except (RecursionError, ValueError) as error:  # nested too deeply, or a number of too many digits
            reject(self.path, line, f"not JSON that can be read ({error})")
        else:
            if isinstance(values, dict):
                yield Row(line, values)
            else:
                expected = "a JSON object with a field for each column"
                reject(self.path, line, f"expected {expected}, not {_type_name(values)}")
        return end

    def _check_texts(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            names = [check_unicode(name, where, self.errors) for name in value]
            parts = zip(names, value.values(), strict=True)
            return {name: self._check_texts(part, f"column `{name}`") for name, part in parts}
        if isinstance(value, list):
            return [self._check_texts(part, where) for part in value]
        return check_unicode(value, where, self.errors) if isinstance(value, str) else value

    def _read_parquet(self, columns: Sequence[str] | None) -> Iterator[Row]:
        import pyarrow.parquet as pq

        names = self.check_names(self.parquet_names())
        names = names if columns is None else [name for name in names if name in columns]
        numbers = count(1)
        with refusing_damage(f"{self.path} is not a Parquet file that can be read"), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
                cells = [batch.column(name).to_pylist() for name in names]
                for values in zip(*cells, strict=True):
                    yield Row(next(numbers), dict(zip(names, values, strict=True)))


def parse_cells(record: str, delimiter: str) -> list[str] | None:
    """Split a record; no cells where its quotes make no sense, None while one is open."""
    if '"' not in record:
        return record.split(delimiter)
    try:
        return next(csv.reader([record], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return None if "unexpected end" in str(error) else []


def split_records(
    lines: Iterable[tuple[int, str]], delimiter: str, widths: Container[int] | None = None, over_lines: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells, which may be quoted; an unmatched quote is literal.

    Args:
        lines: Numbered lines with their ends; blank ones are left out.
        delimiter: What stands between cells.
        widths: How many cells a record may have; None for as many as the first has.
        over_lines: Quoted cells may span several lines. Elsewhere a stray quote costs no row but its own.

    Yields:
        The line that a record begins on, and its cells.
    """
    lines, ahead = iter(lines), deque[tuple[int, str]]()
    while following := ahead.popleft() if ahead else next(lines, None):
        number, line = following
        if not line.strip("\r\n "):
            continue
        text = line.rstrip("\r\n")
        cells = parse_cells(text, delimiter)
        if cells is None and over_lines:
            taken: list[tuple[int, str]] = []
            cells = _close_quote(line, chain(_drain(ahead), lines), taken, delimiter)
            if not cells or (widths is not None and len(cells) not in widths):
                cells = None
                ahead.extendleft(reversed(taken))
        cells = cells or text.split(delimiter)
        widths = widths or (len(cells),)
        yield number, cells


def _drain(ahead: deque) -> Iterator[tuple[int, str]]:
    while ahead:
        yield ahead.popleft()


def _decode_line(line: str) -> tuple[Any, int]:
    return DECODER.decode(line), 0


def _close_quote(
    line: str, following: Iterator[tuple[int, str]], taken: list[tuple[int, str]], delimiter: str
) -> list[str] | None:
    """The cells of a record that spans several lines; records which lines were consumed."""

    def feed() -> Iterator[str]:
        yield line
        size = 0
        for numbered in following:
            taken.append(numbered)
            size += len(numbered[1])
            if size > LONGEST_CELL:
                return
            yield numbered[1]

    try:
        return next(csv.reader(feed(), delimiter=delimiter, strict=True))
    except csv.Error:
        return None


def _find_delimiter(header: str) -> str:
    header = header.rstrip("\r\n")
    return max(DELIMITERS, key=lambda one: len(parse_cells(header, one) or [header]))


@contextmanager
def refusing_damage(problem: str, *others: type[Exception]) -> Iterator[None]:
    """Raise InputError, with the problem, for a damaged Parquet file, whichever error pyarrow noticed it by, or one of
    the `others`, by which its other readers do."""
    import pyarrow as pa

    try:
        yield
    except (InputError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, *others) as error:
        raise InputError(f"{problem}: {error}") from error


def _first_double(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError(f"two fields are called `{_first_double(name for name, _ in pairs)}`")
    return values


DECODER = json.JSONDecoder(object_pairs_hook=_make_object)


def _type_name(value: Any) -> str:
    names = {bool: "a truth value", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "nothing" if value is None else f"a {type(value).__name__}")
