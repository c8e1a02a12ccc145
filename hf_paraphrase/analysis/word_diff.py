"""Which words a rewording leaves out, and which are new."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from difflib import SequenceMatcher

__all__ = ["format_changes"]

# A word with its inner hyphens and apostrophes, or a mark.
TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def format_changes(source: str, candidate: str) -> tuple[str, str]:
    """Mark what differs between two texts, word by word; in which case a word is written makes no difference.

    A word that stands elsewhere now counts as left out and as new.

    Args:
        source: The text.
        candidate: A rewording.

    Returns:
        Both as HTML, the source with `<del>` around the words that are left out, the other with `<ins>` around the new
        ones.
    """
    sides = [list(TOKEN.finditer(text)) for text in (source, candidate)]
    words = ([found[0].casefold() for found in side] for side in sides)
    changes = [block for block in SequenceMatcher(None, *words, autojunk=False).get_opcodes() if block[0] != "equal"]
    left_out = ((start, end) for _, start, end, _, _ in changes if start < end)
    new = ((start, end) for _, _, _, start, end in changes if start < end)
    return _mark(source, sides[0], left_out, "del"), _mark(candidate, sides[1], new, "ins")


def _mark(text: str, tokens: list[re.Match], runs: Iterable[tuple[int, int]], tag: str) -> str:
    """A text as HTML, with a tag around runs of its tokens, given by the first and by the one behind the last."""
    parts, done = [], 0
    for start, end in runs:
        first, last = tokens[start].start(), tokens[end - 1].end()
        parts += [html.escape(text[done:first]), f"<{tag}>{html.escape(text[first:last])}</{tag}>"]
        done = last
    return "".join([*parts, html.escape(text[done:])])
