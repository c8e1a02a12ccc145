"""The steps of an augmentation, for any pipeline of datatrove; their files appear whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from datasets import Features
from datatrove.data import Document, DocumentsPipeline
from datatrove.io import DataFolder, DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep

from ..common.files import publish
from ..common.hub_access import retry
from ..common.text_tables import ROWS_AT_ONCE
from ..generation.paraphraser import Paraphraser
from .inputs import SOURCE_ID
from .outcomes import ADDED, RowParaphraser, count_outcome, make_rows

# Where a document's metadata has what became of it, and the footer of a shard what became of all of its rows.
OUTCOME, COUNTS = "outcome", b"augmentation"


class RowReader(PipelineStep):
    """Reads one task's equal, consecutive share of the rows of a Parquet file, in which each has a `source_id`."""

    name = "Rows"
    type = "READER"

    def __init__(self, folder: DataFolderLike, name: str, column: str):
        super().__init__()
        self.folder, self.file, self.column = get_datafolder(folder), name, column

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Yield a document for each row, with its columns as metadata; a row without a text too."""
        with self.folder.open(self.file, "rb") as file, pq.ParquetFile(file) as parquet:
            rows = parquet.metadata.num_rows
            start, stop = rows * rank // world_size, rows * (rank + 1) // world_size
            first = 0
            for group in range(parquet.num_row_groups):
                after = first + parquet.metadata.row_group(group).num_rows
                if start < after and first < stop:
                    table = parquet.read_row_group(group).slice(max(start - first, 0), stop - max(start, first))
                    for row in table.to_pylist():
                        self.stat_update("rows")
                        yield Document(text=row[self.column] or "", id=row.pop(SOURCE_ID), metadata=row)
                first = after


class ParaphraseStep(PipelineStep):
    """Paraphrases documents; the result is in each document's metadata, under `outcome`.

    A process loads its model once for all its tasks, on the GPU of its `LOCAL_RANK` if available.

    Args:
        model: A checkpoint folder or Hub repository; or, in a process that runs all tasks itself, a paraphraser.
        loading: Arguments of `Paraphraser.from_pretrained`, such as `trust_remote_code`.
        options: Arguments of a `Paraphraser`'s call: `n`, `batch_size`, `min_adequacy` and so on.
    """

    name = "Paraphrase"
    type = "PARAPHRASER"

    def __init__(
        self, model: str | os.PathLike | Paraphraser, loading: Mapping[str, Any] | None = None, **options: Any
    ):
        super().__init__()
        self.model, self.loading, self.options = model, dict(loading or {}), options

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Yield the documents, in order."""
        model = self.model
        if not isinstance(model, Paraphraser):
            model = load_once(str(model), device=find_device(), **self.loading)
        ask = RowParaphraser(model, **self.options)
        for documents in _groups(data, ask.rows_at_once):
            with self.track_time("batch"):
                outcomes = ask([document.text for document in documents])
            for document, outcome in zip(documents, outcomes, strict=True):
                document.metadata[OUTCOME] = outcome
                self.stat_update("paraphrases", value=len(outcome.paraphrases))
                yield document


class ShardWriter(PipelineStep):
    """Writes the results of a task's documents to a Parquet file, atomically.

    Args:
        folder: On this machine, or where fsspec reaches, such as `hf://datasets/you/yours`.
        features: Of the columns that are kept of the sources.
    """

    name = "Shard"
    type = "WRITER"

    def __init__(self, folder: DataFolderLike, features: Features):
        super().__init__()
        self.folder, self.columns = get_datafolder(folder), list(features)
        self.schema = Features({**features, **ADDED}).arrow_schema

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Write, and yield the documents; the file appears with the end of the last one."""
        counts: Counter[str] = Counter()
        with (
            whole_in_folder(self.folder, name_shard(rank, world_size)) as path,
            pq.ParquetWriter(path, self.schema) as writer,
        ):
            for documents in _groups(data, ROWS_AT_ONCE):
                rows = [row for document in documents for row in self._rows(document)]
                writer.write_table(pa.Table.from_pylist(rows, self.schema))
                for document in documents:
                    count_outcome(counts, document.metadata[OUTCOME])
                yield from documents
            writer.add_key_value_metadata({COUNTS: json.dumps(counts)})

    def _rows(self, document: Document) -> Iterator[dict[str, Any]]:
        values = {name: document.metadata[name] for name in self.columns}
        return make_rows(values, document.id, document.metadata[OUTCOME])


def name_shard(rank: int, world_size: int) -> str:
    """File name of a task's shard, in the naming scheme of `datasets`."""
    return f"data/train-{rank:05d}-of-{world_size:05d}.parquet"


def read_counts(folder: DataFolderLike, name: str) -> Counter[str]:
    """The counts in the footer of a shard."""
    with get_datafolder(folder).open(name, "rb") as file:
        return Counter(json.loads(pq.read_metadata(file).metadata[COUNTS]))


# Once in a process.
load_once = cache(Paraphraser.from_pretrained)


def find_device() -> str:
    """The GPU of this process by its `LOCAL_RANK`; the CPU without GPUs."""
    if not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{int(os.environ.get('LOCAL_RANK', 0)) % torch.cuda.device_count()}"


def _groups(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    documents = iter(documents)
    while group := list(islice(documents, size)):
        yield group


@contextmanager
def whole_in_folder(folder: DataFolder, name: str) -> Iterator[Path]:
    """Write a file to a folder, here or where fsspec reaches, atomically even when several processes write it.

    Yields where to write it. As the `with` block ends, unless by an error, it is put in its place: on this machine by
    being renamed, after it is flushed to the disk, and elsewhere as one upload.
    """
    if not folder.is_local():
        with tempfile.TemporaryDirectory() as workplace:
            path = Path(workplace) / "whole"
            yield path
            retry(lambda: folder.put_file(str(path), name))
        return
    path = Path(folder.resolve_paths(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: a task that another machine was thought to have lost may still be written there.
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        yield temporary
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_in_folder(folder: DataFolder, name: str, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with whole_in_folder(folder, name) as path:
        path.write_text(text, encoding="utf-8")


def clean_up(folder: DataFolder, name: str) -> None:
    """Remove what killed processes have left in a folder of a folder, which they do on this machine alone."""
    if folder.is_local():
        for path in Path(folder.resolve_paths(name)).glob(".*.part"):
            path.unlink(missing_ok=True)
