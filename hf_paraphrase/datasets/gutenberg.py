from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ..common.errors import InputError
from ..common.fields import option
from .addresses import RELEASES, Release
from .builder import seeded_order
from .running_text import RunningTextBuilder, RunningTextConfig
from .sampling import linked_groups
from .sentences import Splitter, sentence_splitter

LARGEST_BOOK = 64 << 20
LINE_END = re.compile(r"\r+\n?")
BLANK_LINE = re.compile(r"\n[ \t]*\n")
# The header ends with this line, or with the end of the small print that stood there until about 2003.
START = re.compile(r"^\*{3} ?START OF TH(?:IS|E) PROJECT GUTENBERG E(?:BOOK|TEXT)[^*]{0,500}\*{3}", re.M | re.I)
SMALL_PRINT = re.compile(r"^\*END\*? ?THE SMALL PRINT!.*\*END\*.*$", re.M | re.I)
# The footer starts with the first of these; the second often precedes it.
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
# Shorter paragraphs are the same in many books by chance.
SHORTEST = 100
# Every n-th paragraph is sampled: enough for a short story, and thousands of books fit into memory.
SAMPLING = 4
# Paragraphs of more books than that are notes of the transcribers.
MOST_OWNERS = 20
# So many samples make two texts overlap.
SHARED = 3


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
        numbers = sorted(set(self.config.numbers or ()))
        return RELEASES[self.corpus_name].fill(*({"number": number} for number in numbers))

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


class Book(NamedTuple):
    """A book; its paragraphs have single spaces for white space, and NUL characters are dropped."""

    title: str
    author: str
    paragraphs: list[str]
    nul_characters: int = 0


def read_book(path: Path) -> Book:
    """Read a book without the header and footer of Project Gutenberg: UTF-8, or Windows-1252 or Latin-1 where its
    header does not say UTF-8. What is no such book raises InputError, which says why, without the path."""
    text = _decode(path)
    nul_characters = text.count("\0")
    text = text.replace("\0", "")
    start = START.search(text)
    small_print = SMALL_PRINT.search(text, start.end() if start else 0, (start.end() if start else 0) + NEARBY)
    header = small_print or start
    header_end = header.end() if header else 0
    end = END.search(text, header_end)
    footer = end.start() if end else len(text)
    last_line = LAST_LINE.search(text, max(header_end, footer - NEARBY), footer)
    footer = last_line.start() if last_line else footer
    title, author = _title_and_author(text[:header_end], path)
    paragraphs = list(_paragraphs(text[header_end:footer]))
    if not paragraphs:
        raise InputError("holds no text")
    return Book(title, author, paragraphs, nul_characters)


def _decode(path: Path) -> str:
    if path.stat().st_size > LARGEST_BOOK:
        raise InputError(f"is larger than {LARGEST_BOOK >> 20} MiB, which no book is")
    content = path.read_bytes()
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


def fingerprints(paragraphs: Iterable[str]) -> set[int]:
    """Hashes of a document's longer paragraphs, or rather of the fourth of them whose hashes are multiples of four."""
    texts = (paragraph.lower() for paragraph in paragraphs if len(paragraph) >= SHORTEST)
    hashes = (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts)
    return {value // SAMPLING for value in hashes if value % SAMPLING == 0}


def group_overlapping(documents: Sequence[set[int]]) -> list[list[int]]:
    """Group documents, by their fingerprints, that share some, such as a collection and its parts; whatever their
    order.

    Returns the groups, as the places of their documents.
    """
    owners: dict[int, list[int]] = defaultdict(list)
    for place, marks in enumerate(documents):
        for mark in marks:
            owners[mark].append(place)
    common: Counter[tuple[int, int]] = Counter()
    for places in owners.values():
        if len(places) <= MOST_OWNERS:
            common.update(combinations(places, 2))
    links = defaultdict(list)
    for (first, second), count in common.items():
        if count >= SHARED:
            links[first].append(second)
    return linked_groups(range(len(documents)), lambda place: (place, *links[place]))
