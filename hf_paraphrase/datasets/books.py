from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ..common.errors import InputError
from ..common.fields import option
from .documents import split_of, split_point
from .running_text import RunningTextBuilder, RunningTextConfig


@dataclass
class BooksConfig(RunningTextConfig):
    """How the lines become documents."""

    lines_per_document: int = option("Lines per document: the files do not mark where a book ends.", 1000, least=2)
    validation_fraction: float = option("The share of documents to validate on.", 0.005, least=0, most=1)
    test_fraction: float = option("The share of documents to test on.", 0.01, least=0, most=1)

    def check(self) -> None:
        super().check()
        if self.shares()["train"] <= 0:
            raise InputError("`validation_fraction` and `test_fraction` leave nothing to train on")

    def shares(self) -> dict[str, float]:
        held_out = {"test": self.test_fraction, "validation": self.validation_fraction}
        return {**held_out, "train": 1 - sum(held_out.values())}


class BooksBuilder(RunningTextBuilder):
    """The Toronto Books corpus, in documents of a fixed number of lines, as in Traynor 2018, section 4.2.2."""

    corpus_name = "books"
    BUILDER_CONFIGS = [
        BooksConfig(name="documents", description="One row for every 1,000 lines."),
        BooksConfig(name="pairs", description="A sentence and what follows it.", pairs=True),
    ]
    files = ("*.txt", "*.txt.gz")
    expected = (
        "expected there: books_large_p1.txt and books_large_p2.txt, or other .txt or .txt.gz files with one sentence "
        "a line"
    )
    origin = (
        "the Toronto Books corpus (BookCorpus, Zhu et al. 2015) is not given out any more; somebody has to lend it"
    )
    # A row is a document.
    rows_at_once: ClassVar[int] = 100

    def parts(self) -> dict[str, dict[str, Any]]:
        paths = self.paths(self.data_dir)
        return {split: {"paths": paths, "split": split} for split in reversed(self.config.shares())}

    def generate_rows(self, paths: list[Path], split: str) -> Iterator[dict[str, Any]]:
        with self.reader() as reader:
            for path in paths:
                lines = filter(None, (line.strip() for _, line in reader.lines(path)))
                while document := list(islice(lines, self.config.lines_per_document)):
                    point = split_point(self.config.seed, "\n".join(document))
                    if split_of(point, self.config.shares()) == split:
                        yield from self.rows(None, None, document)
