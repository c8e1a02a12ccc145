"""The rows of `text_tables` as Arrow tables, whose columns have one type each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from .errors import InputError
from .text_tables import ROWS_AT_ONCE, Row, TextTable, refusing_damage

# pyarrow's errors for values without a common or supported type.
UNFIT = (pa.ArrowException, OverflowError)


def find_schema(
    tables: Sequence[TextTable], texts: Collection[str] = (), lists: Collection[str] = (), required: bool = False
) -> pa.Schema:
    """The columns of files and types that hold all values. Cells of csv and tsv are text; of JSON all lines decide.

    Args:
        tables: The files.
        texts: The columns that must hold text; missing ones are skipped.
        lists: Those of them that may hold lists of texts instead.
        required: Every row of JSON must name all of `texts`, be it with null, and all files have the same columns.

    Raises:
        InputError: A cell's type differs from its column's or from the required one; or files other than JSON have
            different columns.
    """
    schemas = [_find_schema(table, texts, lists, required) for table in tables]
    schema = schemas[0]
    for table, other in zip(tables[1:], schemas[1:], strict=True):
        differing = sorted(set(other.names) ^ set(schemas[0].names))
        if differing and (required or table.columns() is not None):
            raise InputError(f"{table.path} and {tables[0].path} differ in their columns: {', '.join(differing)}")
        schema = _unify(schema, other, str(table.path))
    return schema


def _find_schema(table: TextTable, texts: Collection[str], lists: Collection[str], required: bool) -> pa.Schema:
    names = table.columns()
    if names is None:
        return _infer_all(table, texts, lists, required)
    if table.kind != "parquet":
        return pa.schema([(name, pa.string()) for name in names])
    with refusing_damage(f"{table.path} is not a Parquet file that can be read"):
        schema = pq.read_schema(table.path)
    schema = pa.schema([_plain_field(table, field) for field in schema], schema.metadata)
    for field in schema:
        kind = field.type.value_type if field.name in lists and _is_list(field.type) else field.type
        if field.name in texts and not is_text(kind):
            raise InputError(f"{table.path}: column `{field.name}` must hold text, not {field.type}")
    return schema


def read_tables(table: TextTable, schema: pa.Schema) -> Iterator[tuple[list[int], pa.Table]]:
    """Read the columns of a schema that `find_schema` has found, some rows at a time; InputError for unreadable rows.

    Yields:
        The lines of some rows (of Parquet their numbers, from 1), and the rows.
    """
    if table.kind == "parquet":
        yield from _read_parquet(table, schema)
        return
    rows = table.rows()
    while some := list(islice(rows, ROWS_AT_ONCE)):
        lists = [field.name for field in schema if _is_list(field.type)]
        values = [
            {**row.values, **{name: _as_list(row.values[name]) for name in lists if name in row.values}}
            for row in some
        ]
        try:
            yield [row.line for row in some], pa.Table.from_pylist(values, schema)
        except UNFIT as error:  # a number too large for its type, for instance
            raise InputError(f"{_lines(table, some)}: {error}") from error


def _unify(schema: pa.Schema, other: pa.Schema, where: str) -> pa.Schema:
    try:
        return pa.unify_schemas([schema, other], promote_options="permissive").with_metadata(schema.metadata)
    except pa.ArrowTypeError as error:
        raise InputError(f"{where}: a column has another type than before: {error}") from error


def _infer_all(table: TextTable, texts: Collection[str], lists: Collection[str], required: bool) -> pa.Schema:
    schema, listed, rows = pa.schema([]), set(), table.rows()
    while some := list(islice(rows, ROWS_AT_ONCE)):
        for row in some:
            for name in texts:
                if required:
                    table.column(row, [name])
                if name in lists:
                    table.texts(row, name)
                    listed.update([name] if isinstance(row.values.get(name), list) else [])
                else:
                    table.text(row, name)
        names = dict.fromkeys(name for row in some for name in row.values)
        found = [(name, pa.string() if name in texts else _infer(table, some, name)) for name in names]
        schema = _unify(schema, pa.schema(found), _lines(table, some))
    for name in listed:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.list_(pa.string())))
    return schema


def _infer(table: TextTable, rows: list[Row], name: str) -> pa.DataType:
    values = [row.values.get(name) for row in rows]
    try:
        return pa.array(values).type
    except UNFIT as error:
        first = next(value for value in values if value is not None)
        for row in rows:
            _check_type(table, row, name, first)
        raise InputError(f"{_lines(table, rows)}: column `{name}`: {error}") from error


def _check_type(table: TextTable, row: Row, name: str, before: Any) -> None:
    value = row.values.get(name)
    try:
        pa.array([before, value])
    except UNFIT:
        problem = f"column `{name}` has another type than before: {value!r:.100}"
        raise InputError(f"{table.place(row.line)}: {problem}") from None


def _read_parquet(table: TextTable, schema: pa.Schema) -> Iterator[tuple[list[int], pa.Table]]:
    first = 1
    with refusing_damage(f"{table.path} is damaged"), pq.ParquetFile(table.path) as parquet:
        there = [name for name in schema.names if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=there):
            found = pa.Table.from_batches([batch])
            found.validate(full=True)  # invalid UTF-8, which would show only where the text is used
            for name in set(schema.names) - set(there):
                found = found.append_column(name, pa.nulls(len(found)))
            yield list(range(first, first + len(found))), found.select(schema.names).cast(schema)
            first += len(found)


def _plain_field(table: TextTable, field: pa.Field) -> pa.Field:
    plain = field.with_type(_plain_type(field.type)).with_nullable(True)
    try:
        datasets.Features.from_arrow_schema(pa.schema([plain]))
    except ValueError:
        problem = f"{field.type} is a type that datasets does not hold; leave the column out or convert it"
        raise InputError(f"{table.path}: column `{field.name}`: {problem}") from None
    return plain


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same values for readers that know neither categories, views nor maps."""
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", _plain_type(kind.key_type)), ("value", _plain_type(kind.item_type))]))
    if pa.types.is_struct(kind):
        return pa.struct(
            [(kind.field(place).name, _plain_type(kind.field(place).type)) for place in range(kind.num_fields)]
        )
    if _is_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _lines(table: TextTable, rows: list[Row]) -> str:
    return f"{table.path}, lines {rows[0].line} to {rows[-1].line}"
