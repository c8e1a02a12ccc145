"""Rows that are no corpus of this package: of the Hub, of files, of a folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
from datasets.exceptions import DatasetGenerationError

from ..errors import InputError
from .sampling import divide_linked, held_out_sizes

__all__ = ["is_elsewhere", "load_elsewhere"]

logger = logging.getLogger(__name__)

Splits = datasets.DatasetDict | datasets.IterableDatasetDict

# What datasets reads files with, by their endings; also names by themselves, with `data_files`.
FILE_READERS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".txt": "text",
    ".arrow": "arrow",
}
# What people call the split to validate with.
VALIDATION = ("validation", "valid", "val", "dev")
SPLITS = ("train", "validation", "test")
# Columns that hold the one text of a row, or two.
TEXTS = (("source", "target"), ("sentence1", "sentence2"), ("source",), ("query",), ("text",))
# Where a split has to be made: most rows of it, the most that it takes, and the seed of the draw.
HELD_OUT, MOST_HELD_OUT, SEED = 1000, 0.1, 42


def is_elsewhere(path: str) -> bool:
    """Whether a path that is no corpus here is for datasets to read: `owner/name`, a reader of files, or a place."""
    return "/" in path or path in FILE_READERS.values() or Path(path).expanduser().exists()


def load_elsewhere(
    path: str,
    name: str | None = None,
    data_dir: str | os.PathLike | None = None,
    data_files: Any = None,
    columns: Mapping[str, str] | None = None,
    streaming: bool = False,
    **options: Any,
) -> Splits:
    """Read what `datasets.load_dataset` reads, with the columns and splits of this package.

    Args:
        path: A repository of the Hub, `parquet`, `csv`, `json`, `text` or `arrow` with `data_files`, a file of one of
            these kinds, a folder of such files, or one that `save_to_disk` wrote.
        name: A configuration.
        data_dir: A folder inside the repository.
        data_files: Files of the repository or of this machine.
        columns: What the columns are to be called, and what they are called there; the others are left out.
        streaming: Read while it is used, keeping nothing; the splits are those that there are.
        options: Further arguments of `datasets.load_dataset`, such as `revision`.

    Returns:
        The splits. Where there is no `validation` or `test`, a tenth of the training rows, at most 1,000, become it.
        No text of theirs stands in another split, since rows that share one are kept together, and the rows to test on
        have all targets of a source as `references`. Rows that lack a text are left out, and labels are classes.

    Raises:
        InputError: There is no such dataset or column, or an option is wrong.
    """
    splits = _load(path, name, data_dir, data_files, streaming, options)
    for split in VALIDATION[1:]:
        if split in splits and "validation" not in splits:
            splits["validation"] = splits.pop(split)
    if columns is not None:
        splits = type(splits)({split: _rename_columns(rows, columns, path) for split, rows in splits.items()})
    if streaming:
        return splits
    whole = datasets.DatasetDict({split: _leave_out_gaps(rows, path) for split, rows in splits.items()})
    return _make_splits(_name_labels(whole))


def _load(path: str, name: str | None, data_dir: Any, data_files: Any, streaming: bool, options: dict) -> Splits:
    place = Path(path).expanduser()
    if any((place / mark).is_file() for mark in ("dataset_dict.json", "state.json")):
        saved = datasets.load_from_disk(str(place))
        saved = saved if isinstance(saved, datasets.DatasetDict) else datasets.DatasetDict(train=saved)
        if not streaming:
            return saved
        return datasets.IterableDatasetDict({split: rows.to_iterable_dataset() for split, rows in saved.items()})
    reader = str(place) if place.is_dir() else path
    if place.is_file():
        kind = Path(path.removesuffix(".gz")).suffix
        if kind not in FILE_READERS:
            raise InputError(f"{path} ends in {kind or 'nothing'}; datasets reads: {', '.join(FILE_READERS)}")
        reader, data_files = FILE_READERS[kind], str(place)
        options = {"sep": "\t", **options} if kind == ".tsv" else options
    try:
        return datasets.load_dataset(
            reader,
            name,
            data_dir=None if data_dir is None else str(data_dir),
            data_files=data_files,
            streaming=streaming,
            **options,
        )
    except DatasetGenerationError as error:
        raise InputError(f"{path} cannot be read: {error.__cause__ or error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _rename_columns(rows: Any, columns: Mapping[str, str], path: str) -> Any:
    """Keep some columns of a split, under other names.

    Args:
        rows: A split, streamed or not.
        columns: Name here -> name there.
        path: What it is a split of, for errors.

    Raises:
        InputError: There is no such column; the message has those that there are.
    """
    if not isinstance(columns, Mapping) or not columns or len(set(columns.values())) < len(columns):
        raise InputError(f"`columns` gives each new name a column of its own, as in source=question1; not {columns!r}")
    there = rows.column_names or list(next(iter(rows), {}))
    for column in columns.values():
        if column not in there:
            raise InputError(f"`columns`: {path} has no column {column!r}; it has: {', '.join(there)}")
    kept = rows.select_columns(list(columns.values()))
    return kept.rename_columns({column: name for name, column in columns.items() if name != column})


def _leave_out_gaps(rows: datasets.Dataset, path: str) -> datasets.Dataset:
    """Leave out rows of which a text is null or blank, or the label is not known, with a warning that counts them."""
    texts = _texts_of(rows)
    kept = rows.filter(lambda *row: all(text and text.strip() for text in row), input_columns=texts) if texts else rows
    if "label" in rows.features:
        # Classes that are not known are -1 on the Hub.
        lowest = 0 if isinstance(rows.features["label"], datasets.ClassLabel) else float("-inf")
        kept = kept.filter(
            lambda label: label is not None and (isinstance(label, str) or label >= lowest), input_columns="label"
        )
    if len(kept) < len(rows):
        left_out = len(rows) - len(kept)
        logger.warning("%s: left out %d of %d rows, which lack a text or a label", path, left_out, len(rows))
    return kept


def _name_labels(splits: datasets.DatasetDict) -> datasets.DatasetDict:
    """Make classes of labels that are texts, numbers or truth values, the same for all splits; places stay numbers."""
    if any("label" not in rows.features or "query" in rows.features for rows in splits.values()):
        return splits
    if all(isinstance(rows.features["label"], datasets.ClassLabel) for rows in splits.values()):
        return splits
    names = sorted({str(label) for rows in splits.values() for label in rows.unique("label")})
    return datasets.DatasetDict({split: _encode_labels(rows, names) for split, rows in splits.items()})


def _encode_labels(rows: datasets.Dataset, names: list[str]) -> datasets.Dataset:
    features = datasets.Features({**rows.features, "label": datasets.ClassLabel(names=names)})
    return rows.map(lambda label: {"label": names.index(str(label))}, input_columns="label", features=features)


def _make_splits(splits: datasets.DatasetDict) -> datasets.DatasetDict:
    """Make what is missing of `validation` and `test` out of `train`, or of the only split whatever its name."""
    if len(splits) == 1 and not set(splits) & {"validation", "test"}:
        splits = datasets.DatasetDict(train=next(iter(splits.values())))
    missing = [split for split in ("validation", "test") if split not in splits]
    if missing and "train" in splits and _texts_of(splits["train"]):
        made = _divide(splits["train"], missing)
        if "test" in made and "target" in made["test"].features:
            made["test"] = _gather(made["test"])
        splits = datasets.DatasetDict({**splits, **made})
    order = sorted(splits, key=lambda split: SPLITS.index(split) if split in SPLITS else len(SPLITS))
    return datasets.DatasetDict({split: splits[split] for split in order if len(splits[split])})


def _divide(rows: datasets.Dataset, missing: list[str]) -> dict[str, datasets.Dataset]:
    """Draw rows for the missing splits; rows that share a text, directly or through others, stay together."""
    columns = [rows[name][:] for name in _texts_of(rows)]
    wanted = [HELD_OUT if split in missing else 0 for split in ("validation", "test")]
    sizes = held_out_sizes(len(rows), *wanted, most=MOST_HELD_OUT * len(missing))
    places = divide_linked(list(zip(columns[0], columns[-1], strict=True)), *sizes, SEED)
    return {split: rows.select(places[split]) for split in ("train", *missing)}


def _gather(rows: datasets.Dataset) -> datasets.Dataset:
    """A row for each source, with all of its targets as references."""
    references: dict[str, list[str]] = {}
    for source, target in zip(rows["source"], rows["target"], strict=True):
        references.setdefault(source, []).append(target)
    return datasets.Dataset.from_dict({"source": list(references), "references": list(references.values())})


def _texts_of(rows: datasets.Dataset) -> list[str]:
    """The columns that hold a row's one text or two."""
    kinds = (kind for kind in TEXTS if all(name in rows.features for name in kind))
    return list(next(kinds, ()))
