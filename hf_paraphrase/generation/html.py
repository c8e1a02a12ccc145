"""The prose of an HTML page: running text in its blocks, by its places in the source."""

from __future__ import annotations

from html import unescape
from html.parser import HTMLParser
from itertools import accumulate, pairwise

from .prose import HARD_BREAK
from .styled_text import Character

__all__ = ["find_html_passages"]

# Elements inside sentences. All others, known or not, end a passage.
INLINE = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike strong
    sub sup time tt u var
"""
INLINE_ELEMENTS = frozenset(INLINE.split())
WITHOUT_TEXT = frozenset(("img", "wbr", "input"))
# Text inside these is never reworded.
FIXED = frozenset(("code", "data", "del", "kbd", "q", "samp", "time", "tt", "var"))
# Not prose: headings, tables, code, and hidden text.
NO_PROSE = """
    button h1 h2 h3 h4 h5 h6 iframe math noscript pre script select style svg table template textarea title
"""
SKIPPED = frozenset(NO_PROSE.split())


def find_html_passages(text: str) -> list[list[Character]]:
    """Find the running text of a page.

    Headings, tables, code, forms, scripts and elements with `translate="no"` are not prose.

    Returns:
        The characters of each passage.
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
        self._note("fix" if ("translate", "no") in attrs else "open", tag)

    def handle_startendtag(self, tag, attrs):  # noqa: D102
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):  # noqa: D102
        self._note("close", tag)

    def handle_data(self, data):  # noqa: D102
        self._note("text")

    def handle_entityref(self, name):  # noqa: D102
        self._note("entity")

    def handle_charref(self, name):  # noqa: D102
        self._note("entity")

    def handle_comment(self, data):  # noqa: D102
        self._note("comment")

    def handle_decl(self, decl):  # noqa: D102
        self._note("comment")

    def handle_pi(self, data):  # noqa: D102
        self._note("comment")

    def unknown_decl(self, data):  # noqa: D102
        self._note("comment")

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
                raw = self.text[start:end]
                shown = unescape(raw) if kind == "entity" else raw
                if kind == "text" or len(shown) != 1:
                    places = [(sign, start + place, start + place + 1) for place, sign in enumerate(raw)]
                else:
                    places = [(shown, start, end)]
                passages[-1] += [
                    Character(" " if sign.isspace() else sign, first, last, style, is_fixed)
                    for sign, first, last in places
                ]
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
