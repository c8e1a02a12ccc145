"""Word documents: the prose of paragraphs is rewritten inside the XML, and everything else stays byte for byte."""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from typing import Any
from xml.parsers import expat

from ..errors import InputError
from .prose import HARD_BREAK
from .styled_text import Character, spell

PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
STYLES = "word/styles.xml"
# Not prose: tables, deleted text, field instructions, and drawings with their text.
SKIPPED = frozenset(("tbl", "del", "moveFrom", "instrText", "drawing", "pict", "object", "AlternateContent", "rt"))
# Elements inside paragraphs that may differ around text of one style.
CONTAINERS = frozenset(("hyperlink", "ins", "moveTo", "sdt", "smartTag", "fldSimple"))
# Invisible traces of editing and of the spelling checker.
UNSEEN = frozenset(("lang", "noProof", "proofErr", "lastRenderedPageBreak"))
# Tags between two runs alike, which Word writes wherever somebody stopped for a moment.
REMOVABLE = re.compile(
    r"(?:</?w:(?:r|t)(?:\s[^<>]*)?>|<w:(?:proofErr|lastRenderedPageBreak)\b[^<>]*/>|<w:rPr>(?:(?!</?w:r\b).)*?</w:rPr>"
    r"|<w:rPr/>|\s)+",
    re.DOTALL,
)
HEADING = re.compile(r"heading \d|title|subtitle|toc \d|toc heading|html preformatted|macro text", re.IGNORECASE)
UNSPACED_TEXT = re.compile(r"<w:t>(?=\s|[^<]*\s</w:t>)")


def rewrite_parts(document: bytes, rewrite: Callable[[str, str], str]) -> bytes:
    """Return a document with the XML that `rewrite` makes of each part with prose and of the styles.

    Raises:
        InputError: It is not a Word document, or is encrypted.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(document)) as archive:
            parts = {entry: archive.read(entry) for entry in archive.infolist()}
        texts = {entry.filename: part.decode("utf-8") for entry, part in parts.items() if entry.filename in PARTS}
    except (zipfile.BadZipFile, RuntimeError, UnicodeDecodeError) as error:
        raise InputError(f"this is not a readable .docx file ({error}): save it again as .docx") from error
    if PARTS[0] not in texts:
        raise InputError(f"this is not a .docx file: {PARTS[0]} is missing; save it again as .docx")
    styles = next((part for entry, part in parts.items() if entry.filename == STYLES), b"").decode("utf-8", "replace")
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for entry, part in parts.items():
            text = texts.get(entry.filename)
            if text is not None and (new := rewrite(text, styles)) != text:
                # Word keeps the spaces at the ends of runs where it is told to.
                part = UNSPACED_TEXT.sub('<w:t xml:space="preserve">', new).encode("utf-8")
            archive.writestr(entry, part, entry.compress_type)
    return written.getvalue()


def find_docx_passages(text: str, styles: str = "") -> list[list[Character]]:
    """Find the running text of a part: its paragraphs, without headings, which `styles` identify, tables and drawings.

    Returns the characters of each paragraph, with the style of their run.

    Raises:
        InputError: It is not XML.
    """
    events = _read_events(text)
    reader = _ParagraphReader(text, _find_headings(styles))
    for (start, kind, name, value), (end, _, _, _) in pairwise([*events, (len(text), "", "", None)]):
        reader.read(start, end, kind, name, value)
    return reader.passages


def _find_headings(styles: str) -> set[str]:
    """The identifiers of styles that are not prose; their names are English in every language of Word."""
    found, current = set(), ""
    for _, kind, name, value in _read_events(styles) if styles else []:
        if kind == "open" and name == "style":
            current = value.get("styleId", "")
        elif kind == "open" and name == "name" and HEADING.fullmatch(value.get("val", "")):
            found.add(current)
    return found


def _read_events(text: str) -> list[tuple[int, str, str, Any]]:
    """Tags and text by their places in the XML, with the local names of elements of Word."""
    if "<!DOCTYPE" in text:
        raise InputError("this is not a .docx file: its XML has a document type; save it again as .docx")
    parser = expat.ParserCreate(namespace_separator=" ")
    starts = list(accumulate((len(sign.encode("utf-8")) for sign in text), initial=0))
    events: list[tuple[int, str, str, Any]] = []

    def note(kind: str, name: str = "", value: Any = None) -> None:
        events.append((bisect_left(starts, parser.CurrentByteIndex), kind, name.rpartition(" ")[2], value))

    def open_element(name: str, attributes: dict[str, str]) -> None:
        note("open", name, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    parser.StartElementHandler = open_element
    parser.EndElementHandler = lambda name: note("close", name)
    parser.CharacterDataHandler = lambda data: note("text", value=data)
    parser.DefaultHandler = lambda data: note("other")
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        raise InputError(f"this is not a readable .docx file ({error}): save it again as .docx") from error
    return events


class _ParagraphReader:
    """Sorts the tags and texts of a part into paragraphs."""

    def __init__(self, text: str, headings: set[str]):
        self.text, self.headings = text, headings
        self.passages: list[list[Character]] = []
        self._characters: list[Character] = []
        self._is_prose, self._skipped = True, 0
        self._containers: list[int] = []
        self._field: list[int] = []
        # What a run looks like, once its properties were read; those of paragraphs have the same names.
        self._look: list[tuple[str, str]] = []
        self._in_text = self._in_look = self._in_run = False

    def read(self, start: int, end: int, kind: str, name: str, value: Any) -> None:
        """Take the next tag or text."""
        if self._skipped or (kind == "open" and name in SKIPPED):
            self._skipped += {"open": 1, "close": -1}.get(kind, 0)
            if kind == "open" and self._skipped == 1:
                self._characters.append(Character("", start, end))
        elif kind == "open":
            self._open(start, end, name, value)
        elif kind == "close":
            self._close(name)
        elif kind == "text" and self._in_text:
            style = (tuple(self._containers), tuple(self._field), tuple(self._look))
            self._characters += spell(value, start, end, style, is_fixed=bool(self._field))

    def _open(self, start: int, end: int, name: str, value: Mapping[str, str]) -> None:
        if self._in_look:
            self._look += [] if name in UNSEEN else [(name, str(sorted(value.items())))]
        elif name == "p":
            self._characters, self._is_prose = [], True
        elif name == "pStyle" and value.get("val") in self.headings or name == "outlineLvl":
            self._is_prose = False
        elif name == "r":
            self._in_run, self._look = True, []
        elif name == "rPr":
            self._in_look = self._in_run
        elif name == "t":
            self._in_text = True
        elif name in CONTAINERS:
            self._containers.append(start)
        elif name == "fldChar":
            if value.get("fldCharType") == "begin":
                self._field.append(start)
            elif value.get("fldCharType") == "end" and self._field:
                self._field.pop()
        elif self._in_run and name not in UNSEEN:
            self._characters.append(Character(HARD_BREAK if name in ("br", "cr", "tab") else "", start, end))

    def _close(self, name: str) -> None:
        if name == "p":
            if self._is_prose and any(one.shown.strip() for one in self._characters):
                self.passages.append(self._characters)
        elif name in CONTAINERS and self._containers:
            self._containers.pop()
        elif name == "rPr":
            self._in_look = False
        elif name == "r":
            self._in_run = False
        elif name == "t":
            self._in_text = False
