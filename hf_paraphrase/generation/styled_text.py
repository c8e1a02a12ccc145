"""Sentences whose styles are tags, as in HTML and Word: the model reads text alone, and styles come back."""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from typing import Any, NamedTuple
from xml.parsers import expat

from ..common.errors import InputError
from .prose import HARD_BREAK, MIN_WORDS, count_words, find_sentence_ranges

WHITE_SPACE = re.compile(r"\s+")


class Character(NamedTuple):
    """One character as a reader sees it.

    Attributes:
        shown: The character; `HARD_BREAK` for a line that ends on purpose; "" for a picture or the like.
        start: Where it starts in the source.
        end: Where its source, such as `&amp;`, ends.
        style: The same for characters that differ in nothing but their place.
        is_fixed: Whether it must not be rewritten, such as code.
    """

    shown: str
    start: int
    end: int
    style: Any = None
    is_fixed: bool = False


def spell(shown: str, start: int, end: int, style: Any, is_fixed: bool) -> list[Character]:
    """The characters of a text between two places of the source, where an entity such as `&amp;` is one."""
    if end - start != len(shown):
        return [Character(shown, start, end, style, is_fixed)]
    return [Character(sign, place, place + 1, style, is_fixed) for place, sign in enumerate(shown, start)]


class Stretch(NamedTuple):
    """The part between two runs of a sentence's main style: its text, and its source with surrounding tags."""

    shown: str
    source: str

    @property
    def text(self) -> str:
        return self.shown.strip()


@dataclass(frozen=True)
class StyledSentence:
    """A sentence mostly in one style, with spans in other styles.

    Attributes:
        source: The document.
        characters: Of the sentence.
        removable: A pattern of tags that may go where text on both sides has the same style, such as a mere split of
            it; None where none may.
        line: The line on which it starts.
    """

    source: str
    characters: Sequence[Character]
    line: int
    removable: re.Pattern[str] | None = None

    @cached_property
    def text(self) -> str:
        """The sentence on one line, without tags."""
        return WHITE_SPACE.sub(" ", "".join(one.shown for one in self.characters)).strip()

    @cached_property
    def _bounds(self) -> tuple[Any, int, int]:
        """The style of most characters, and the places of the first and of the last one in it."""
        styles = Counter(one.style for one in self.characters if one.shown.strip())
        style = styles.most_common(1)[0][0]
        places = [place for place, one in enumerate(self.characters) if one.style == style and one.shown.strip()]
        return style, places[0], places[-1]

    @property
    def start(self) -> int:
        """Start of the rewritten part in the source, after a beginning in another style."""
        return self.characters[self._bounds[1]].start

    @property
    def end(self) -> int:
        """End of the rewritten part."""
        return self.characters[self._bounds[2]].end

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The stretches in other styles, but for those that begin or end the sentence."""
        style, first, last = self._bounds
        found, shown, end = [], "", self.start
        for one in self.characters[first : last + 1]:
            if one.style == style and one.shown:
                if one.start > end:
                    found.append(Stretch(shown, self.source[end : one.start]))
                shown, end = "", one.end
            else:
                shown += one.shown
        return [one for one in found if one.text or not (self.removable and self.removable.fullmatch(one.source))]

    @cached_property
    def obstacle(self) -> str | None:
        """Why it is not rewritten; None where it may be."""
        style, first, last = self._bounds
        free = "".join(one.shown if one.style == style else " " for one in self.characters)
        texts = [one.text for one in self.stretches]
        if any(HARD_BREAK in one.shown for one in self.characters):
            return "a hard line break stands in it"
        if self.characters[first].is_fixed or count_words(free.split()) < MIN_WORDS:
            return f"it has fewer than {MIN_WORDS} words outside its markup"
        if not all(texts) or len(set(texts)) < len(texts):
            return "markup without text stands in it, or twice the same text in another style"
        return None

    def fit(self, candidate: str) -> str | None:
        """Write a new sentence, on one line and without tags, as the source between `start` and `end`.

        None where the text of a stretch does not come back exactly once.
        """
        _, first, last = self._bounds
        before, after = (
            WHITE_SPACE.sub(" ", "".join(one.shown for one in part))
            for part in (self.characters[:first], self.characters[last + 1 :])
        )
        before, after = before.lstrip(), after.rstrip()
        is_longer = len(candidate) > len(before) + len(after)
        if not is_longer or not candidate.startswith(before) or not candidate.endswith(after):
            return None
        middle = candidate[len(before) : len(candidate) - len(after)]
        if middle != middle.strip():
            return None
        by_text = {one.text: one for one in self.stretches}
        if not by_text:
            return self._escape(middle)
        anyone = "|".join(map(re.escape, sorted(by_text, key=len, reverse=True)))
        pieces = re.split(rf"(?<!\w)({anyone})(?!\w)", middle)
        return self._join(pieces, by_text) if sorted(pieces[1::2]) == sorted(by_text) else None

    def _join(self, pieces: list[str], by_text: dict[str, Stretch]) -> str | None:
        """Put free text and stretches together; spaces that a stretch brings are not written twice."""
        for place in range(1, len(pieces), 2):
            shown = by_text[pieces[place]].shown
            if shown[0].isspace():
                if not pieces[place - 1][-1:].isspace():
                    return None
                pieces[place - 1] = pieces[place - 1].rstrip()
            if shown[-1].isspace():
                if not pieces[place + 1][:1].isspace():
                    return None
                pieces[place + 1] = pieces[place + 1].lstrip()
        return "".join(
            by_text[piece].source if place % 2 else self._escape(piece) for place, piece in enumerate(pieces)
        )

    def _escape(self, text: str) -> str:
        """Write signs as the old sentence wrote them, such as `&rsquo;`."""
        written = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
        for one in self.characters:
            # All white space is shown as a space: which of them was an entity is not known.
            if self.source.startswith("&", one.start) and one.end > one.start + 1 and not one.shown.isspace():
                written[one.shown] = self.source[one.start : one.end]
        return "".join(written.get(sign, sign) for sign in text)


def split_styled(
    source: str, passages: Iterable[Sequence[Character]], language: str, removable: re.Pattern[str] | None = None
) -> Iterator[StyledSentence]:
    """The sentences of passages, in order; `removable` as in `StyledSentence`."""
    line_starts = [0, *(found.end() for found in re.finditer("\n", source))]
    for passage in passages:
        # One character each, so that places agree; a picture or a note belongs to the sentence before it.
        shown = "".join(one.shown if len(one.shown) == 1 else "\u2060" for one in passage)
        for start, end in find_sentence_ranges(shown, language):
            characters = passage[start:end]
            if any(one.shown.strip() for one in characters):
                line = bisect_right(line_starts, characters[0].start)
                yield StyledSentence(source, characters, line, removable)


# Elements inside sentences. All others, known or not, end a passage.
INLINE = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike strong
    sub sup time tt u var
"""
INLINE_ELEMENTS = frozenset(INLINE.split())
WITHOUT_TEXT = frozenset(("img", "wbr", "input"))
VOID_ELEMENTS = WITHOUT_TEXT | {"area", "base", "br", "col", "embed", "hr", "link", "meta", "param", "source", "track"}
# Text inside these is never reworded.
FIXED = frozenset(("code", "data", "del", "kbd", "q", "samp", "time", "tt", "var"))
# Not prose: headings, tables, code, and hidden text.
NO_PROSE = """
    button h1 h2 h3 h4 h5 h6 iframe math noscript pre script select style svg table template textarea title
"""
SKIPPED = frozenset(NO_PROSE.split())


def find_html_passages(text: str) -> list[list[Character]]:
    """Find the running text of a page; returns the characters of each passage.

    Headings, tables, code, forms, scripts and elements with `translate="no"` are not prose.
    """
    parser = _PassageParser(text)
    parser.feed(text)
    parser.close()
    return parser.find_passages()


class _PassageParser(HTMLParser):
    """Notes where each tag, text and entity starts; each ends where the next one starts."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self.text = text
        self.events: list[tuple[int, str, str]] = []
        self._line_starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))

    def _note(self, kind: str, value: str = "") -> None:
        line, column = self.getpos()
        self.events.append((self._line_starts[line - 1] + column, kind, value))

    def handle_starttag(self, tag, attrs):  # noqa: D102 (the names and arguments are HTMLParser's)
        self._note("fix" if ("translate", "no") in attrs and tag not in VOID_ELEMENTS else "open", tag)

    def handle_startendtag(self, tag, attrs):  # noqa: D102
        self.handle_starttag(tag, attrs)
        # As in XHTML; an inline one marks the text behind it, which keeps it in its place.
        if tag not in VOID_ELEMENTS | INLINE_ELEMENTS:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):  # noqa: D102
        self._note("close", tag)

    def handle_data(self, data):  # noqa: D102
        self._note("text")

    def handle_entityref(self, name):  # noqa: D102
        self._note("entity")

    def handle_comment(self, data):  # noqa: D102
        self._note("comment")

    handle_charref = handle_entityref
    handle_decl = handle_pi = unknown_decl = handle_comment

    def find_passages(self) -> list[list[Character]]:
        """Group the collected text into passages."""
        passages: list[list[Character]] = [[]]
        stack: list[tuple[str, int, bool]] = []
        skipped: list[str] = []
        for (start, kind, tag), (end, _, _) in pairwise([*self.events, (len(self.text), "end", "")]):
            if skipped:
                depth = {"open": 1, "fix": 1, "close": -1}.get(kind, 0) if tag == skipped[0] else 0
                skipped = [*skipped, tag] if depth > 0 else skipped[1:] if depth < 0 else skipped
            elif kind in ("text", "entity"):
                style, is_fixed = tuple(place for _, place, _ in stack), any(fixed for _, _, fixed in stack)
                shown = self.text[start:end]
                if kind == "entity" and len(unescape(shown)) == 1:
                    shown = unescape(shown)
                shown = "".join(" " if sign.isspace() else sign for sign in shown)
                passages[-1] += spell(shown, start, end, style, is_fixed)
            elif kind == "comment" or tag in WITHOUT_TEXT:
                passages[-1].append(Character("", start, end))
            elif tag == "br":
                passages[-1].append(Character(HARD_BREAK, start, end))
            elif tag in INLINE_ELEMENTS:
                _move(stack, kind, tag, start)
            else:
                passages.append([])
                stack.clear()
                skipped = [tag] if tag in SKIPPED and kind != "close" or kind == "fix" else []
        return [passage for passage in passages if any(one.shown.strip() for one in passage)]


def _move(stack: list[tuple[str, int, bool]], kind: str, tag: str, start: int) -> None:
    """Go into an inline element or out of it; an end without a start is nothing, as in browsers."""
    if kind != "close":
        stack.append((tag, start, kind == "fix" or tag in FIXED))
    elif tag in (names := [name for name, _, _ in stack]):
        del stack[len(names) - 1 - names[::-1].index(tag) :]


PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
STYLES = "word/styles.xml"
# Not prose: tables, deleted text, field instructions, and drawings with their text.
LEFT_OUT = frozenset(("tbl", "del", "moveFrom", "instrText", "drawing", "pict", "object", "AlternateContent", "rt"))
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
        if self._skipped or (kind == "open" and name in LEFT_OUT):
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
