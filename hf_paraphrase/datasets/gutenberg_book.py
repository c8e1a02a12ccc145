from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from .sampling import linked_groups

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


# Shorter paragraphs are the same in many books by chance.
SHORTEST = 100
# Every n-th paragraph is sampled: enough for a short story, and thousands of books fit into memory.
SAMPLING = 4
# Paragraphs of more books than that are notes of the transcribers.
MOST_OWNERS = 20
# So many samples make two texts overlap.
SHARED = 3


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
