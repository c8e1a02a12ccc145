from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from ..common.text_tables import TextTable
from .builder import TEXT, CorpusBuilder, CorpusConfig
from .corpus_reader import CorpusReader, is_text
from .sampling import cut

logger = logging.getLogger(__name__)

LABELS = ("entailment", "neutral", "contradiction")
# What the release writes where its five judges did not agree.
NO_LABEL = "-"
FILES = {
    split: tuple(f"{folder}snli_1.0_{part}.jsonl{end}" for folder in ("", "snli_1.0/") for end in ("", ".gz"))
    for split, part in (("train", "train"), ("validation", "dev"), ("test", "test"))
}


class SnliBuilder(CorpusBuilder):
    """Sentence pairs that follow from, contradict or do not touch each other: SNLI 1.0."""

    corpus_name = "snli"
    BUILDER_CONFIGS = [CorpusConfig(name="default", description="All pairs with a gold label.")]
    files = tuple(name for names in FILES.values() for name in names)
    expected = f"expected there, or in its subfolder snli_1.0: {', '.join(names[0] for names in FILES.values())}"
    origin = "they are in snli_1.0.zip of nlp.stanford.edu/projects/snli (CC BY-SA 4.0)"
    licence_id = "cc-by-sa-4.0"
    tasks = ("text-classification",)

    def features(self) -> datasets.Features:
        label = datasets.ClassLabel(names=list(LABELS))
        return datasets.Features({"sentence1": TEXT, "sentence2": TEXT, "label": label})

    def parts(self) -> dict[str, dict[str, Any]]:
        paths = {split: self.find(*names) for split, names in FILES.items()}
        with self.reader() as reader:
            tested = {(row["sentence1"], row["sentence2"]) for row in self._read(reader, paths["test"])}
        return {split: {"path": path, "tested": tested if split != "test" else set()} for split, path in paths.items()}

    def generate_rows(self, path: Path, tested: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        left_out = 0
        with self.reader() as reader:
            for row in self._read(reader, path):
                if (row["sentence1"], row["sentence2"]) in tested:
                    left_out += 1
                else:
                    yield row
        if left_out:
            logger.warning("%s: %d pairs stand in the test file too; left out", path, left_out)

    def _read(self, reader: CorpusReader, path: Path) -> Iterator[dict[str, Any]]:
        fields = ("gold_label", "sentence1", "sentence2")
        for number, cells in reader.cells(TextTable(path, "jsonl"), fields):
            label, *sentences = (cut(cell, None) if is_text(cell) else "" for cell in cells)
            if not (label and all(sentences)):
                reader.reject(path, number, f"has no text in one of {', '.join(fields)}")
            elif label in LABELS:
                yield {"sentence1": sentences[0], "sentence2": sentences[1], "label": LABELS.index(label)}
            elif label != NO_LABEL:
                reader.reject(path, number, f"has the gold label {label[:20]!r}")
