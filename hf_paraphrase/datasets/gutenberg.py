from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from ..common.fields import option
from ..errors import InputError
from .addresses import RELEASES, Release, ReleasedFile
from .builder import seeded_order
from .gutenberg_book import fingerprints, group_overlapping, read_book
from .running_text import RunningTextBuilder, RunningTextConfig
from .sentences import Splitter, sentence_splitter


@dataclass
class GutenbergConfig(RunningTextConfig):
    """Which books are read, and how."""

    author: str | None = option("Only the books of this author; spaces, full stops and case do not matter.", None)
    splitter: Splitter = option("What splits sentences: `rules`, or, as in the thesis, `punkt` (needs NLTK).", "rules")
    train_books: int = option("Most books to train on.", 303, least=1)
    validation_books: int = option("Most books to validate on. The thesis has none.", 0, least=0)
    test_books: int = option("Most books to test on. Of fewer the three numbers are proportions.", 30, least=0)
    parts: int = option(
        "How many parts of as many paragraphs each book is cut into, which count as books: a makeshift for an author "
        "of few, whose parts are in different splits.",
        1,
        least=1,
    )
    numbers: list[int] | None = option(
        "Without `data_dir`, the books to download, by their numbers at Project Gutenberg: `[2009, 1228]`.",
        None,
        least=1,
    )


class GutenbergBuilder(RunningTextBuilder):
    """Books of Project Gutenberg, sampled and handled as in Traynor 2018, section 3.1.1."""

    corpus_name = "gutenberg"
    BUILDER_CONFIGS = [
        GutenbergConfig(name="books", description="One row a book."),
        GutenbergConfig(name="pairs", description="A sentence and what follows it.", pairs=True),
    ]
    files = ("*.txt", "txt/*.txt")
    expected = (
        "expected there, or in its subfolder txt: one .txt file a book, with the header and footer of Project "
        "Gutenberg or called Author___Title.txt"
    )
    origin = "they are the plain-text editions of https://www.gutenberg.org, which `numbers` downloads"
    # A row is a whole book.
    rows_at_once: ClassVar[int] = 16

    def release(self) -> Release:
        release = RELEASES[self.corpus_name]
        (file,) = release.files
        numbers = sorted(set(self.config.numbers or ()))
        return replace(release, files=tuple(ReleasedFile(file.url.format(number=number)) for number in numbers))

    def parts(self) -> dict[str, dict[str, Any]]:
        # Early: before all books are read.
        sentence_splitter(self.config.splitter)
        books, marks = self._read_books()
        groups = [[books[place] for place in group] for group in group_overlapping(marks)]
        return {split: {"parts": sorted(parts)} for split, parts in self._divide(groups).items() if parts}

    def generate_rows(self, parts: list[tuple[Path, int]]) -> Iterator[dict[str, Any]]:
        split_sentences = sentence_splitter(self.config.splitter)
        for path, part in parts:
            book = read_book(path)
            paragraphs = self._cut(book.paragraphs)[part]
            sentences = (sentence for paragraph in paragraphs for sentence in split_sentences(paragraph))
            yield from self.rows(book.title, book.author, sentences)

    def _cut(self, paragraphs: list[str]) -> list[list[str]]:
        """A book's parts, in order."""
        bounds = [len(paragraphs) * part // self.config.parts for part in range(self.config.parts + 1)]
        return [paragraphs[start:stop] for start, stop in pairwise(bounds)]

    def _read_books(self) -> tuple[list[tuple[Path, int]], list[set[int]]]:
        """The files of the books asked for, with the number of each part, and the fingerprints of each."""
        marks: list[set[int]] = []
        books, authors = [], set()
        paths = self.paths(self.data_dir)
        with self.reader(unit="books") as reader:
            for path in paths:
                reader.lines_read += 1
                try:
                    book = read_book(path)
                except InputError as error:
                    reader.reject(path, reader.lines_read, str(error))
                    continue
                reader.nul_characters += book.nul_characters
                authors.add(book.author)
                if self.config.author is None or _letters(book.author) == _letters(self.config.author):
                    parts = self._cut(book.paragraphs)
                    books += [(path, number) for number in range(len(parts))]
                    marks += map(fingerprints, parts)
        if not books:
            close = difflib.get_close_matches(self.config.author or "", authors, n=5, cutoff=0.4)
            close = close or sorted(authors)[:5]
            raise InputError(f"`author`: no book here is by {self.config.author!r}; there are: {', '.join(close)}, …")
        return books, marks

    def _divide(self, groups: list[list[tuple[Path, int]]]) -> dict[str, list[tuple[Path, int]]]:
        """Fill the splits with whole groups in a seeded order, one that is too large for a split going to the next."""
        named = {tuple(self._name(*part) for part in group): group for group in groups}
        wanted = self._sizes(sum(map(len, groups)))
        splits: dict[str, list[tuple[Path, int]]] = {split: [] for split in ("train", "validation", "test")}
        for name in seeded_order(named, self.config.seed):
            group = named[name]
            for split, size in wanted.items():
                if len(splits[split]) + len(group) <= size:
                    splits[split] += group
                    break
        for split in ("train", "test"):
            if wanted[split] and not splits[split]:
                raise InputError(
                    f"{sum(map(len, groups))} books, kept together where they share text, are too few to "
                    "divide; add books, or set `test_books` to 0"
                )
        return splits

    def _name(self, path: Path, part: int) -> str:
        name = path.relative_to(self.data_dir).as_posix()
        return name if self.config.parts == 1 else f"{name}-{part}"

    def _sizes(self, count: int) -> dict[str, int]:
        config = self.config
        wanted = {"test": config.test_books, "validation": config.validation_books, "train": config.train_books}
        total = sum(wanted.values())
        if count >= total:
            return wanted
        held_out = {split: max(1, round(count * wanted[split] / total)) if wanted[split] else 0 for split in wanted}
        return {**held_out, "train": count}


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
