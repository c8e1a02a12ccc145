from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import datasets

from ..errors import InputError
from .builder import seeded_order
from .overlap import fingerprints, group_overlapping
from .reader import CorpusReader
from .running_text import RunningTextBuilder, RunningTextConfig
from .sentences import check_splitter, sentence_splitter

__all__ = ["Book", "GutenbergBuilder", "GutenbergConfig", "read_book"]

LARGEST_BOOK = 64 << 20
LINE_END = re.compile(r"\r+\n?")
BLANK_LINE = re.compile(r"\n[ \t]*\n")
# The header ends with this line, or with the end of the small print that stood there until about 2003.
START = re.compile(r"^\*{3} ?START OF TH(?:IS|E) PROJECT GUTENBERG E(?:BOOK|TEXT)[^*]{0,500}\*{3}", re.M | re.I)
SMALL_PRINT = re.compile(r"^\*END\*? ?THE SMALL PRINT!.*\*END\*.*$", re.M | re.I)
# The footer starts with the first of these, the second of which often stands before it.
END = re.compile(r"^\*{3} ?END OF TH(?:IS|E) PROJECT GUTENBERG", re.M | re.I)
LAST_LINE = re.compile(r"^[ \t]*\*{0,3} ?End of (?:this |the )?Project Gutenberg", re.M | re.I)
# What is searched for the end of a small print and for a last line.
NEARBY = 20_000
FIELD = r"^{}:[ \t]*(\S.*(?:\n[ \t]+\S.*)*)"
TITLE, AUTHOR = (re.compile(FIELD.format(name), re.M) for name in ("Title", "Author"))
# The title line of older books, some of which have no fields.
FIRST_LINE = re.compile(r"Project Gutenberg(?:'s)? (?:E(?:Book|text) of )?(?P<title>\S.*?), by (?P<author>\S.*)", re.I)
CHARSET = re.compile(rb"^Character set encoding:[ \t]*(UTF-?8)", re.M | re.I)
# What the transcribers put before the book, in its first paragraphs, and instead of its pictures.
CREDITS = re.compile(
    r"(?:This (?:file|e-?text|e-?book) was )?(?:Produced|Prepared|Transcribed|Scanned) (?:by|from)|E-?text prepared by"
    r"|(?:Editorial )?note: Project Gutenberg|\[?Transcriber'?s?'? note",
    re.I,
)
CREDITED = 5
PICTURE = re.compile(r"\[Illustration.*\]", re.I)


@dataclass
class GutenbergConfig(RunningTextConfig):
    """Which books are read, and how.

    Args:
        seed: Decides which book is in which split.
        pairs: Rows are pairs of a sentence and what follows it, as `sentence_pairs` makes them, not books.
        author: Only the books of this author; spaces, full stops and case make no difference.
        splitter: What splits paragraphs into sentences: `rules`, or `punkt`, as in the thesis, which needs NLTK and
            its data (see `hf_paraphrase.datasets.sentences`).
        train_books: Most books to train on.
        validation_books: Most books to validate on. The thesis has none.
        test_books: Most books to test on. Of fewer books than wanted, the three numbers are proportions.
    """

    author: str | None = None
    splitter: str = "rules"
    train_books: int = 303
    validation_books: int = 0
    test_books: int = 30

    def check(self) -> None:
        super().check()
        self.at_least(1, "train_books")
        self.at_least(0, "validation_books", "test_books")
        check_splitter(self.splitter)


class Book(NamedTuple):
    title: str
    author: str
    paragraphs: list[str]


class GutenbergBuilder(RunningTextBuilder):
    """Books of Project Gutenberg, sampled and handled as in Traynor 2018, section 3.1.1.

    Source: https://www.gutenberg.org, the plain-text edition of any books; or the 3,036 English books of Lahiri's
    Gutenberg Dataset, https://web.eecs.umich.edu/~lahiri/gutenberg_dataset.html, which the thesis sampled.

    Citation: Shibamouli Lahiri. Complexity of word collocation networks: a preliminary structural analysis. EACL 2014
    Student Research Workshop. Michael Traynor. Unsupervised paraphrase generation from
    hierarchical language models. Dalhousie University, 2018.

    Licence: the books are in the public domain in the United States; the Project Gutenberg licence applies to their
    headers and footers, which are cut off.

    Layout: `data_dir`, or its subfolder `txt`, holds one `.txt` file a book. Header and footer are told by their lines
    `*** START OF …` and `*** END OF …` or by the older small print, title and author are read from the header. Files
    without them are read where they are called `Author___Title.txt`, as in Lahiri's collection.

    Columns: `title`, `author`, and `sentences`, the sentences of the whole book in order. With the configuration
    `pairs`: `source`, a sentence, and `target`, what follows it, both as words separated by spaces, of which there are
    30 at most.

    Splits: 303 books in `train` and 30 in `test`, or these proportions of fewer books; `validation` where
    `validation_books` asks for it. Split by book, and books that share text, such as a collection of stories and each
    of them alone, are never in different splits. For `author="W. W. Jacobs"` the thesis had `train_books=86` and
    `test_books=11`, for Charles Darwin 17 and 3.

    Configurations: `books` with one row a book, `pairs` with one row for every sentence but a book's last.
    """

    BUILDER_CONFIG_CLASS = GutenbergConfig
    BUILDER_CONFIGS = [
        GutenbergConfig(name="books", description="One row a book."),
        GutenbergConfig(name="pairs", description="A sentence and what follows it.", pairs=True),
    ]
    DEFAULT_CONFIG_NAME = "books"
    files = ("*.txt", "txt/*.txt")
    origin = "they are the plain-text editions of https://www.gutenberg.org"
    # A row is a whole book.
    rows_at_once: ClassVar[int] = 16

    def layout(self) -> str:
        return (
            "expected there, or in its subfolder txt: one .txt file a book, with the header and footer of Project "
            f"Gutenberg or called Author___Title.txt; {self.origin}"
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        # Early: before all books are read.
        sentence_splitter(self.config.splitter)
        books, marks = self._read_books()
        groups = [[books[place] for place in group] for group in group_overlapping(marks)]
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"paths": sorted(paths)})
            for split, paths in self._divide(groups).items()
            if paths
        ]

    def _generate_examples(self, paths: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
        split_sentences = sentence_splitter(self.config.splitter)
        for path in paths:
            book = read_book(path)
            sentences = (sentence for paragraph in book.paragraphs for sentence in split_sentences(paragraph))
            for number, row in enumerate(self.rows(book.title, book.author, sentences)):
                yield f"{path.name}-{number}", row

    def _read_books(self) -> tuple[list[Path], list[set[int]]]:
        """The files of the books asked for, and the fingerprints of each."""
        books, marks, authors = [], [], set()
        paths = self.paths(self.data_dir)
        if not paths:
            raise FileNotFoundError(f"{self.data_dir} holds no .txt file; {self.layout()}")
        with CorpusReader(self.config.max_bad_fraction, self.layout(), unit="books") as reader:
            for path in paths:
                reader.lines_read += 1
                try:
                    book = read_book(path)
                except InputError as error:
                    reader.reject(path, 1, str(error))
                    continue
                authors.add(book.author)
                if self.config.author is None or _letters(book.author) == _letters(self.config.author):
                    books.append(path)
                    marks.append(fingerprints(book.paragraphs))
        if not books:
            close = (
                difflib.get_close_matches(self.config.author or "", authors, n=5, cutoff=0.4) or sorted(authors)[:5]
            )
            raise InputError(f"`author`: no book here is by {self.config.author!r}; there are: {', '.join(close)}, …")
        return books, marks

    def _divide(self, groups: list[list[Path]]) -> dict[str, list[Path]]:
        """Fill the splits with whole groups in a seeded order, one that is too large for a split going to the next."""
        named = {tuple(path.relative_to(self.data_dir).as_posix() for path in group): group for group in groups}
        wanted = self._sizes(sum(map(len, groups)))
        splits: dict[str, list[Path]] = {split: [] for split in ("train", "validation", "test")}
        for name in seeded_order(named, self.config.seed):
            group = named[name]
            for split, size in wanted.items():
                if len(splits[split]) + len(group) <= size:
                    splits[split] += group
                    break
        for split in ("train", "test"):
            if wanted[split] and not splits[split]:
                raise InputError(
                    f"{sum(map(len, groups))} books, of which those that share text stay together, are too few to "
                    "divide; add books, or set `test_books` to 0"
                )
        return splits

    def _sizes(self, count: int) -> dict[str, int]:
        wanted = {
            "test": self.config.test_books,
            "validation": self.config.validation_books,
            "train": self.config.train_books,
        }
        total = sum(wanted.values())
        if count >= total:
            return wanted
        held_out = {split: max(1, round(count * wanted[split] / total)) if wanted[split] else 0 for split in wanted}
        return {**held_out, "train": count}


def read_book(path: Path) -> Book:
    """Read a book without the header and footer of Project Gutenberg.

    Args:
        path: A plain-text file: UTF-8, or Windows-1252 or Latin-1 where its header does not say UTF-8.

    Raises:
        InputError: It is no such book; the message says why, without the path.
    """
    text = _decode(path)
    start = START.search(text)
    small_print = SMALL_PRINT.search(text, start.end() if start else 0, (start.end() if start else 0) + NEARBY)
    header_end = (small_print or start).end() if small_print or start else 0
    end = END.search(text, header_end)
    footer = end.start() if end else len(text)
    last_line = LAST_LINE.search(text, max(header_end, footer - NEARBY), footer)
    footer = last_line.start() if last_line else footer
    title, author = _title_and_author(text[:header_end], path)
    paragraphs = list(_paragraphs(text[header_end:footer]))
    if not paragraphs:
        raise InputError("holds no text")
    return Book(title, author, paragraphs)


def _decode(path: Path) -> str:
    if path.stat().st_size > LARGEST_BOOK:
        raise InputError(f"is larger than {LARGEST_BOOK >> 20} MiB, which no book is")
    content = path.read_bytes()
    if b"\0" in content:
        raise InputError(f"has a NUL at byte {content.index(0) + 1} of the file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if CHARSET.search(content):
            raise InputError(f"is not UTF-8, as its header says, at byte {error.start + 1} of the file") from error
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            raise InputError(f"is neither UTF-8 nor Windows-1252 at byte {error.start + 1} of the file") from error
    return LINE_END.sub("\n", text)


def _title_and_author(header: str, path: Path) -> tuple[str, str]:
    if not header:
        author, separator, title = path.stem.partition("___")
        if not separator:
            raise InputError("begins with no header of Project Gutenberg and is not called Author___Title.txt")
        return title.strip(), author.strip()
    first = FIRST_LINE.search(header)
    title, author = (
        " ".join(field[1].split()) if field else first[name].strip() if first else ""
        for name, field in (("title", TITLE.search(header)), ("author", AUTHOR.search(header)))
    )
    return title or path.stem, author.rstrip(" ,*")


def _paragraphs(text: str) -> Iterator[str]:
    paragraphs = (" ".join(paragraph.split()) for paragraph in BLANK_LINE.split(text))
    for number, paragraph in enumerate(filter(None, paragraphs)):
        is_credit = number < CREDITED and CREDITS.match(paragraph)
        if not is_credit and not PICTURE.fullmatch(paragraph) and any(map(str.isalpha, paragraph)):
            yield paragraph


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
