from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..common.errors import InputError
from ..common.fields import option
from ..common.text_tables import ENDINGS, TextTable, table_kind
from .corpus_reader import CorpusReader, is_text
from .sampled_pairs import SampledPairsBuilder, SampledPairsConfig
from .sampling import cut
from .table_files import SPLITS, check_splits

ROWS_AT_ONCE = 10_000


@dataclass
class PairsConfig(SampledPairsConfig):
    """Which columns hold the pairs, and how one set of files becomes splits."""

    source_column: str = option("The column of the texts to paraphrase.", "source")
    target_column: str = option("The column of their paraphrases.", "target")
    references_column: str | None = option(
        "In test files, a column with several paraphrases instead of the target column: a list, or text in csv files.",
        None,
    )


class PairsBuilder(SampledPairsBuilder):
    """Your own paraphrase pairs, from csv, tsv, json, jsonl or Parquet files."""

    corpus_name = "pairs"
    BUILDER_CONFIGS = [PairsConfig(name="default", description="Files of your own.", test_size=1000)]
    private = True
    origin = 'for instance load_dataset("pairs", data_files="pairs.csv", source_column="a", target_column="b")'

    def layout(self) -> str:
        return (
            f"expected are files that end in {ENDINGS}, with the columns "
            f"{self.config.source_column!r} and {self.config.target_column!r}; {self.origin}"
        )

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        rows = self._pairs(reader, self.config.data_files["train"])
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            sources, targets = zip(*batch, strict=True)
            yield pa.array(sources, pa.string()), pa.array(targets, pa.string())

    def parts(self) -> dict[str, dict[str, Any]]:
        files = check_splits(self.config.data_files, self.layout())
        if set(files) == {"train"}:
            return super().parts()
        return {split: {"split": split, "paths": list(files[split])} for split in SPLITS if split in files}

    def generate_rows(
        self, split: str, groups: tuple[Any, ...] = (), paths: list[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        if paths is None:
            yield from super().generate_rows(split, groups)
            return
        column = self.config.references_column or self.config.target_column
        with self.reader() as reader:
            if split == "test":
                rows = self._rows(reader, paths, column)
                yield from ({"source": source, "references": targets} for source, targets in rows)
            else:
                pairs = self._pairs(reader, paths)
                yield from ({"source": source, "target": target} for source, target in pairs)

    def _pairs(self, reader: CorpusReader, paths: list[str]) -> Iterator[tuple[str, str]]:
        """Read sources and targets; a list of targets is as many pairs."""
        for source, targets in self._rows(reader, paths, self.config.target_column):
            yield from ((source, target) for target in targets)

    def _rows(self, reader: CorpusReader, paths: list[str], column: str) -> Iterator[tuple[str, list[str]]]:
        """Read sources, each with the texts of another column."""
        names = (self.config.source_column, column)
        for path in map(Path, paths):
            for number, (source, targets) in self._values(reader, path, names):
                texts = [source, *(targets if isinstance(targets, list) else [targets])]
                texts = [cut(text, None) if is_text(text) else "" for text in texts]
                if len(texts) > 1 and all(texts):
                    yield texts[0], texts[1:]
                else:
                    reader.reject(path, number, f"has no text in {names[0]!r} or {names[1]!r}")

    def _values(self, reader: CorpusReader, path: Path, names: tuple[str, str]) -> Iterator[tuple[int, list[Any]]]:
        kind = table_kind(path)
        if kind is None:
            raise InputError(f"{path} ends in {path.suffix or 'nothing'}; {self.layout()}")
        return reader.cells(TextTable(path, "tsv" if kind == "txt" else kind), names)
