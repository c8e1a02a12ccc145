"""Files and folders of rows, which `text_tables` reads, as splits of datasets."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import datasets
import pyarrow as pa
from datasets.data_files import DataFilesDict, DataFilesList

from ..common.arrow_tables import find_schema, read_tables
from ..common.errors import InputError
from ..common.files import state_of_file
from ..common.text_tables import TextTable, expand_globs, find_tables, table_kind
from .builder import CorpusBuilder, CorpusConfig

logger = logging.getLogger(__name__)

Splits: TypeAlias = datasets.DatasetDict | datasets.IterableDatasetDict

SPLITS = ("train", "validation", "test")
# The words of a file's or folder's name that tell its split, as datasets has them.
SPLIT_WORDS = dict.fromkeys(("train", "training"), "train")
SPLIT_WORDS |= dict.fromkeys(("validation", "valid", "dev", "val"), "validation")
SPLIT_WORDS |= dict.fromkeys(("test", "testing", "eval", "evaluation"), "test")
SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}")


@dataclass
class TableFilesConfig(CorpusConfig):
    """How files of rows are read."""

    kind: str | None = None  # that of the files; None to decide by the endings
    delimiter: str | None = None  # of csv; None for the one that the header shows
    texts: list[str] = field(default_factory=list)  # the columns that must hold text
    lists: list[str] = field(default_factory=list)  # columns that may hold lists of texts instead


class TableFilesBuilder(CorpusBuilder):
    """The files of one split."""

    BUILDER_CONFIGS = [TableFilesConfig(name="default")]

    def features(self) -> datasets.Features | None:
        """None until the files are read."""
        return None

    def tables(self) -> list[TextTable]:
        """The files of the split."""
        config = self.config
        paths = [path for files in config.data_files.values() for path in files]
        kinds = ["tsv" if config.kind == "csv" and table_kind(path) == "tsv" else config.kind for path in paths]
        return [TextTable(Path(path), kind, config.delimiter) for path, kind in zip(paths, kinds, strict=True)]

    def parts(self) -> dict[str, dict[str, Any]]:
        tables = self.tables()
        schema = find_schema(tables, self.config.texts, self.config.lists)
        self.info.features = datasets.Features.from_arrow_schema(schema)
        (split,) = self.config.data_files
        # A list: each file is a shard of a stream, which `set_epoch` puts into another order.
        return {split: {"schema": self.info.features.arrow_schema, "numbers": list(range(len(tables)))}}

    def _generate_tables(self, schema: pa.Schema, numbers: list[int]) -> Iterator[tuple[int, pa.Table]]:
        tables = self.tables()
        parts = (rows for number in numbers for _, rows in read_tables(tables[number], schema))
        yield from enumerate(parts)


def read_table_files(
    files: Mapping[str, Sequence[Path]],
    texts: Iterable[str],
    lists: Iterable[str],
    kind: str | None = None,
    delimiter: str | None = None,
    streaming: bool = False,
) -> Splits:
    """Read files of rows by split through the cache of datasets, or, streaming, as they are used.

    Args:
        files: Those of each split.
        texts: The columns that must hold text, if present.
        lists: Those of them that may hold lists of texts.
        kind: That of the files; None to tell it by their endings.
        delimiter: Of csv; None for the one that the header shows.
        streaming: Keep nothing.

    Raises:
        InputError: Files without rows, or that cannot be read; the message names file, line and column.
    """
    splits = {}
    for split, paths in files.items():
        state = TableFilesBuilder.state_of(None) + "".join(f"{path}\0{state_of_file(path)}\0" for path in paths)
        builder = TableFilesBuilder(
            dataset_name="table_files",
            data_files=as_data_files({split: paths}),
            kind=kind,
            delimiter=delimiter,
            texts=list(texts),
            lists=list(lists),
            hash=hashlib.sha256(state.encode()).hexdigest()[:32],
        )
        if streaming:
            splits[split] = builder.as_streaming_dataset()[split]
            continue
        builder.download_and_prepare(verification_mode="no_checks")
        if not builder.info.splits[split].num_examples:
            raise InputError(f"{', '.join(map(str, paths))}: no rows")
        splits[split] = builder.as_dataset(split)
    return datasets.IterableDatasetDict(splits) if streaming else datasets.DatasetDict(splits)


def as_data_files(files: Mapping[str, Iterable[str | os.PathLike]]) -> DataFilesDict:
    """Paths in the form that builders of datasets take, in which no character of a name is a pattern."""
    return DataFilesDict(
        {
            split: DataFilesList(list(map(str, paths)), [(state_of_file(Path(path)),) for path in paths])
            for split, paths in files.items()
        }
    )


def check_splits(files: Mapping[str, Any] | None, layout: str) -> Mapping[str, Any]:
    """The files of each split that a builder was given as `data_files`; raises InputError, with the expected layout,
    where there are none, or a split has another name."""
    if not files:
        raise InputError(f"`data_files` is missing; {layout}")
    unknown = sorted(set(files) - set(SPLITS))
    if unknown:
        raise InputError(f"`data_files` has the split {unknown[0]!r}; there are: {', '.join(SPLITS)}")
    return files


def as_strings(data_files: Any) -> Any:
    """The argument `data_files` with all paths as strings."""
    if isinstance(data_files, Mapping):
        return {split: as_strings(files) for split, files in data_files.items()}
    if isinstance(data_files, str | os.PathLike):
        return os.fspath(data_files)
    return [os.fspath(path) for path in data_files]


def split_files(place: Any, root: Path = Path()) -> dict[str, list[Path]]:
    """The files of each split: of a file, glob pattern or folder, a list of them, or a dict of them by split; relative
    paths begin at `root`.

    Raises InputError for a folder without tables, and FileNotFoundError for a file that is not there.
    """
    if isinstance(place, Mapping):
        return {split: _find_files(some, root) for split, some in place.items()}
    if not isinstance(place, str | os.PathLike) or not (root / place).expanduser().is_dir():
        return {"train": _find_files(place, root)}
    folder = (root / place).expanduser()
    tables = find_tables(folder)
    named = {path: _split_of(path.relative_to(folder)) for path in tables}
    if not any(named.values()):
        return {"train": tables}
    left = [path.name for path, split in named.items() if split is None]
    if left:
        logger.warning("%s: left out, as their names tell no split: %s", folder, ", ".join(left))
    return {
        split: [path for path in tables if named[path] == split]
        for split in dict.fromkeys(filter(None, named.values()))
    }


def _find_files(places: Any, root: Path) -> list[Path]:
    places = [places] if isinstance(places, str | os.PathLike) else places
    paths = [(root / Path(place).expanduser()) for place in places]
    return [file for path in paths for file in (find_tables(path) if path.is_dir() else expand_globs(path))]


def _split_of(path: Path) -> str | None:
    shard = SHARD.fullmatch(path.name.partition(".")[0])
    if shard:
        return SPLIT_WORDS.get(shard[1].lower(), shard[1])
    for part in reversed(path.parts):
        for word in re.split(r"[-._ \d]+", part.lower()):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return None
