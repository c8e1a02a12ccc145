"""Rows of files, of folders of them, of corpora and of the Hub, all read the same way.

The readers of datatrove give a whole file to one task, and skip lines that are damaged and rows without a text. Here a
line that cannot be read is an error that names it, before any model is asked, and every row has its outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_64

from ..common.arrow_tables import find_schema, is_text, read_tables
from ..common.errors import InputError
from ..common.text_tables import ENDINGS, ROWS_AT_ONCE, TextTable, find_tables, table_kind
from ..datasets import list_datasets
from ..datasets import load_dataset as load_corpus
from ..datasets.hub_or_files import is_hub_or_files, read_splits
from .outcomes import check_columns

SOURCE_ID = "source_id"
# The schema of rows, and what reads them.
Source = tuple[pa.Schema, Iterator[pa.Table]]


def write_rows(
    target: Path, path: str, column: str, keep_columns: Sequence[str] | None = None, split: str | None = None
) -> None:
    """Write rows to paraphrase to one Parquet file, each with a `source_id`.

    The kept columns have their types and the metadata that `datasets` has for them.

    Args:
        target: The Parquet file.
        path: A file, a folder of files that end alike or not, a corpus of this package, or a repository of the Hub.
        column: Where the text is.
        keep_columns: The other columns to keep; None for all.
        split: Of a corpus or repository; None for `train`.

    Raises:
        InputError: The input does not exist or has no rows, a column is missing, or a line cannot be read.
    """
    if Path(path).exists():
        if split is not None:
            raise InputError(f"--split is for corpora and the Hub; {path} has files")
        if Path(path).is_file() and table_kind(path) is None:
            raise InputError(f"{path} is not a file that ends in {ENDINGS}")
        names = {Path(path): Path(path).name}
        if Path(path).is_dir():
            names = {file: file.relative_to(path).as_posix() for file in find_tables(Path(path))}
        schema, tables = _open_files(names, column, keep_columns)
    elif table_kind(path) is not None:
        raise InputError(f"there is no file {path}")
    else:
        schema, tables = _open_dataset(path, column, keep_columns, split or "train")
    rows = 0
    with pq.ParquetWriter(target, schema) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=ROWS_AT_ONCE)
            rows += len(table)
    if not rows:
        raise InputError("the input has no rows")


def digest(path: str) -> str | None:
    """A number that changes with the contents of a file or of the files in a folder; None for anything else."""
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


def _open_files(names: Mapping[Path, str], column: str, keep_columns: Sequence[str] | None) -> Source:
    """Read files; `names` has what rows call each."""
    tables = [TextTable(file) for file in names]
    for table in tables:
        table.check_columns([column])
    schema = find_schema(tables, [column], required=True)
    kept = check_columns(column, keep_columns, schema.names, str(tables[0].path))
    schema = pa.schema([schema.field(name) for name in kept], schema.metadata)
    with_ids = _with_source_id(schema)

    def read() -> Iterator[pa.Table]:
        for table in tables:
            for numbers, rows in read_tables(table, schema):
                ids = [f"{names[table.path]}:{number}" for number in numbers]
                yield _conform(rows.append_column(SOURCE_ID, pa.array(ids)), with_ids, str(table.path))

    return with_ids, read()


def _open_dataset(path: str, column: str, keep_columns: Sequence[str] | None, split: str) -> Source:
    if path in list_datasets():
        rows = load_corpus(path, split=split)
    elif not is_hub_or_files(path):
        raise InputError(f"{path} is not a file, folder, corpus or dataset of the Hub")
    elif split not in (splits := read_splits(path)):
        raise InputError(f"{path} has no split {split}; there are: {', '.join(splits)}")
    else:
        rows = splits[split]
    schema = rows.features.arrow_schema
    kept = check_columns(column, keep_columns, schema.names, path)
    if not is_text(schema.field(column).type):
        raise InputError(f"{path}: `{column}` has {schema.field(column).type}, not text")
    schema = _with_source_id(pa.schema([schema.field(name) for name in kept], schema.metadata))

    def read() -> Iterator[pa.Table]:
        start = 0
        for table in rows.with_format("arrow").iter(ROWS_AT_ONCE):
            ids = [f"{split}:{start + place}" for place in range(len(table))]
            yield _conform(table.append_column(SOURCE_ID, pa.array(ids)), schema, path)
            start += len(table)

    return schema, read()


def _with_source_id(schema: pa.Schema) -> pa.Schema:
    """With what `datasets` knows, such as the names of classes, and without what other libraries have noted."""
    named = datasets.Features.from_arrow_schema(schema)
    return datasets.Features({**named, SOURCE_ID: datasets.Value("string")}).arrow_schema


def _conform(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{where}: {error}") from error
