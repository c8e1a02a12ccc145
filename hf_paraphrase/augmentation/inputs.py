"""Rows of csv, tsv, jsonl and Parquet files, of folders of them, of corpora and of the Hub, all read the same way.

The readers of datatrove give a whole file to one task, and skip lines that are damaged and rows without a text. Here a
line that cannot be read is an error that names it, before any model is asked, and every row has its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_64

from ..datasets import list_datasets
from ..datasets import load_dataset as load_corpus
from ..datasets.reader import refusing_damage
from ..errors import InputError
from ..files import open_text
from ..metrics.score_files import JSON_LINES, SEPARATORS, Row, parse_object, read_columns
from .outcomes import check_columns

__all__ = ["ROWS_AT_ONCE", "SOURCE_ID", "Source", "digest", "open_source", "write_rows"]

PARQUET = ".parquet"
ENDINGS = (*SEPARATORS, *JSON_LINES, PARQUET)
SOURCE_ID = "source_id"
# Rows of a row group, the least that is read at a time.
ROWS_AT_ONCE = 1000
# How pyarrow says that values have no type in common, or one that it does not hold.
UNFIT = (pa.ArrowException, OverflowError)
MEND = "write it anew"


class Source(NamedTuple):
    """Rows to paraphrase.

    Args:
        schema: The columns that are kept, and their types; with what `datasets` knows of them beyond.
        tables: Reads them, each row with a `source_id`.
    """

    schema: pa.Schema
    tables: Callable[[], Iterator[pa.Table]]


def open_source(path: str, column: str, keep_columns: Sequence[str] | None = None, split: str | None = None) -> Source:
    """Find rows and the types of their columns.

    Args:
        path: A file, a folder of files that end alike or not, a corpus of this package, or a repository of the Hub.
        column: Where the text is.
        keep_columns: The other columns to keep; None for all.
        split: Of a corpus or repository; None for `train`.

    Raises:
        InputError: There is nothing of the kind, a column is missing, or a line cannot be read.
    """
    if Path(path).exists():
        if split is not None:
            raise InputError(f"--split is for corpora and the Hub; {path} has files")
        return _open_files(_find_files(Path(path)), column, keep_columns)
    if Path(path).suffix in ENDINGS:
        raise InputError(f"there is no file {path}")
    return _open_dataset(path, column, keep_columns, split or "train")


def write_rows(source: Source, path: Path) -> int:
    """Write the rows to one Parquet file, and count them.

    Raises:
        InputError: A row cannot be read, or there is none.
    """
    rows = 0
    with pq.ParquetWriter(path, source.schema) as writer:
        for table in source.tables():
            writer.write_table(table, row_group_size=ROWS_AT_ONCE)
            rows += len(table)
    if not rows:
        raise InputError("the input has no rows")
    return rows


def digest(path: str) -> str | None:
    """A number that changes with the contents of a file or of the files in a folder; None for what is neither."""
    if not Path(path).exists():
        return None
    hashed = xxh3_64()
    root = Path(path)
    for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if file.is_file():
            hashed.update(file.relative_to(root).as_posix().encode())
            with file.open("rb") as opened:
                while block := opened.read(2**20):
                    hashed.update(block)
    return hashed.hexdigest()


def _find_files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in ENDINGS)
    if not files or files[0].suffix not in ENDINGS:
        raise InputError(f"{path} {'is no' if path.is_file() else 'has no'} file that ends in {', '.join(ENDINGS)}")
    return files


def _open_files(files: list[Path], column: str, keep_columns: Sequence[str] | None) -> Source:
    schemas = [_find_schema(file, column) for file in files]
    schema = schemas[0]
    for file, other in zip(files[1:], schemas[1:], strict=True):
        if set(other.names) != set(schemas[0].names):
            differing = sorted(set(other.names) ^ set(schemas[0].names))
            raise InputError(f"{file} and {files[0]} differ in their columns: {', '.join(differing)}")
        schema = _unify(schema, other, str(file))
    kept = check_columns(column, keep_columns, schema.names, str(files[0]))
    schema = _with_source_id(pa.schema([schema.field(name) for name in kept], schema.metadata))

    def tables() -> Iterator[pa.Table]:
        for file in files:
            yield from _read_tables(file, schema, column)

    return Source(schema, tables)


def _open_dataset(path: str, column: str, keep_columns: Sequence[str] | None, split: str) -> Source:
    try:
        read = load_corpus if path in list_datasets() else datasets.load_dataset
        rows = read(path, split=split)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no file, folder, corpus or dataset of the Hub within reach: {error}") from error
    schema = rows.features.arrow_schema
    kept = check_columns(column, keep_columns, schema.names, path)
    _check_text(schema, column, path)
    schema = _with_source_id(pa.schema([schema.field(name) for name in kept], schema.metadata))

    def tables() -> Iterator[pa.Table]:
        start = 0
        for table in rows.with_format("arrow").iter(ROWS_AT_ONCE):
            ids = [f"{split}:{start + place}" for place in range(len(table))]
            yield _conform(table.append_column(SOURCE_ID, pa.array(ids)), schema, path)
            start += len(table)

    return Source(schema, tables)


def _with_source_id(schema: pa.Schema) -> pa.Schema:
    """With what `datasets` knows, such as the names of classes, and without what other libraries have noted."""
    named = datasets.Features.from_arrow_schema(schema)
    return datasets.Features({**named, SOURCE_ID: datasets.Value("string")}).arrow_schema


def _find_schema(file: Path, column: str) -> pa.Schema:
    """The columns of a file. Values of csv and tsv are texts, as they stand; types of jsonl are those of all lines."""
    if file.suffix == PARQUET:
        with refusing_damage(f"{file} is no Parquet file that can be read", MEND):
            schema = pq.read_schema(file)
        _check_text(schema, column, str(file))
        return schema
    if file.suffix in SEPARATORS:
        with open_text(file, encoding="utf-8-sig", newline="") as lines:
            first = next(read_columns(file, lines), None)
        if first is None:
            raise InputError(f"{file} has no rows")
        if column not in first.values:
            raise InputError(f"{file} has no column `{column}`; it has: {', '.join(first.values)}")
        return pa.schema([(name, pa.string()) for name in first.values])
    schema = pa.schema([(column, pa.string())])
    for rows in _chunks(_read_lines(file, column)):
        for row in rows:
            _check_row(file, row, column)
        schema = _unify(schema, _infer(file, rows), f"{file}, lines {rows[0].line} to {rows[-1].line}")
    return schema


def _infer(file: Path, rows: list[Row]) -> pa.Schema:
    names = dict.fromkeys(name for row in rows for name in row.values)
    return pa.schema([(name, _infer_type(file, rows, name)) for name in names])


def _infer_type(file: Path, rows: list[Row], name: str) -> pa.DataType:
    values = [row.values.get(name) for row in rows]
    try:
        return pa.array(values).type
    except UNFIT as error:
        first = next(value for value in values if value is not None)
        for row in rows:
            _check_type(file, row, name, first)
        raise InputError(f"{file}, lines {rows[0].line} to {rows[-1].line}: `{name}`: {error}") from error


def _check_type(file: Path, row: Row, name: str, before: Any) -> None:
    try:
        pa.array([before, row.values.get(name)])
    except UNFIT:
        message = f"`{name}` has another type than before: {row.values.get(name)!r:.100}"
        raise InputError(f"{file}, line {row.line}: {message}") from None


def _unify(schema: pa.Schema, other: pa.Schema, where: str) -> pa.Schema:
    try:
        return pa.unify_schemas([schema, other], promote_options="permissive").with_metadata(schema.metadata)
    except pa.ArrowTypeError as error:
        raise InputError(f"{where}: a column has another type than before: {error}") from error


def _read_tables(file: Path, schema: pa.Schema, column: str) -> Iterator[pa.Table]:
    if file.suffix == PARQUET:
        first = 1
        names = [name for name in schema.names if name != SOURCE_ID]
        with refusing_damage(f"{file} is damaged", MEND), pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=names):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)  # bytes that are no UTF-8, which would show only when a task reads them
                ids = [f"{file.name}:{number}" for number in range(first, first + len(table))]
                yield _conform(table.append_column(SOURCE_ID, pa.array(ids)), schema, str(file))
                first += len(table)
        return
    read = _read_lines if file.suffix in JSON_LINES else _read_fields
    for rows in _chunks(read(file, column)):
        values = [{**row.values, SOURCE_ID: f"{file.name}:{row.line}"} for row in rows]
        try:
            yield pa.Table.from_pylist(values, schema)
        except UNFIT as error:  # a number too large for its type, for instance
            raise InputError(f"{file}, lines {rows[0].line} to {rows[-1].line}: {error}") from error


def _read_lines(file: Path, column: str) -> Iterator[Row]:
    with open_text(file, encoding="utf-8-sig", newline="\n") as lines:
        for number, line in zip(count(1), lines, strict=False):
            if line.strip():
                yield Row(number, parse_object(file, number, line, column))


def _read_fields(file: Path, column: str) -> Iterator[Row]:
    with open_text(file, encoding="utf-8-sig", newline="") as lines:
        yield from read_columns(file, lines)


def _check_row(file: Path, row: Row, column: str) -> None:
    if column not in row.values:
        raise InputError(f"{file}, line {row.line}: no `{column}`, only {', '.join(row.values) or 'nothing'}")
    value = row.values[column]
    if value is not None and not isinstance(value, str):
        raise InputError(f"{file}, line {row.line}: `{column}` is no text: {value!r:.100}")


def _check_text(schema: pa.Schema, column: str, where: str) -> None:
    if column in schema.names:
        kind = schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
            raise InputError(f"{where}: `{column}` has {kind}, not text")


def _conform(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{where}: {error}") from error


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        yield chunk
