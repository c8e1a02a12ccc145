"""Which words a rewording leaves out, and which are new."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

# A word with its inner hyphens and apostrophes, or a mark.
TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


# A longer run of words is a new clause, not another word.
LONGEST_RUN = 3


def format_changes(source: str, candidate: str, others: Sequence[str] = ()) -> tuple[str, str]:
    """Mark what differs between two texts, word by word and ignoring case.

    A word that moved counts as left out and as new.

    Args:
        source: The text.
        candidate: A rewording.
        others: Further rewordings. Words of `candidate` that they replace become buttons that show the replacements.

    Returns:
        Both as HTML, the source with `<del>` around the words that are left out, the other with `<ins>` around the new
        ones.
    """
    sides = [list(TOKEN.finditer(text)) for text in (source, candidate)]
    changes = [block for block in _compare(*sides) if block[0] != "equal"]
    left_out = [_range(sides[0], start, end) for _, start, end, _, _ in changes if start < end]
    new = [_range(sides[1], start, end) for _, _, _, start, end in changes if start < end]
    parts, done = [], 0
    for (start, end), words in _find_alternatives(candidate, others).items():
        shown = html.escape(" · ".join(words))
        parts.append(_mark(candidate, new, "ins", done, start))
        parts.append(f'<span class="word" role="button" tabindex="0">{_mark(candidate, new, "ins", start, end)}')
        parts.append(f'<span class="others"> [{shown}]</span></span>')
        done = end
    parts.append(_mark(candidate, new, "ins", done, len(candidate)))
    return _mark(source, left_out, "del", 0, len(source)), "".join(parts)


def _find_alternatives(text: str, others: Sequence[str]) -> dict[tuple[int, int], list[str]]:
    """Alternatives for short, non-overlapping word spans, by character range."""
    found: dict[tuple[int, int], dict[str, None]] = {}
    own = list(TOKEN.finditer(text))
    for other in others:
        theirs = list(TOKEN.finditer(other))
        for kind, start, end, first, last in _compare(own, theirs):
            if kind == "replace" and max(end - start, last - first) <= LONGEST_RUN:
                words = other[slice(*_range(theirs, first, last))]
                found.setdefault(_range(own, start, end), {})[words] = None
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda run: (run[1] - run[0], run)):
        if all(end <= first or last <= start for first, last in chosen):
            chosen.append((start, end))
    return {run: list(found[run]) for run in sorted(chosen)}


def _compare(first: list[re.Match], second: list[re.Match]) -> Sequence[tuple[str, int, int, int, int]]:
    ours, theirs = ([found[0].casefold() for found in side] for side in (first, second))
    return SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()


def _range(tokens: list[re.Match], start: int, end: int) -> tuple[int, int]:
    """The characters of a run of tokens, which is given by its first token and the one after its last."""
    return tokens[start].start(), tokens[end - 1].end()


def _mark(text: str, runs: Iterable[tuple[int, int]], tag: str, start: int, end: int) -> str:
    """Part of a text as HTML, with a tag around runs of characters, or the parts of them inside it."""
    parts, done = [], start
    for first, last in runs:
        first, last = max(first, start), min(last, end)
        if first < last:
            parts += [html.escape(text[done:first]), f"<{tag}>{html.escape(text[first:last])}</{tag}>"]
            done = last
    return "".join([*parts, html.escape(text[done:end])])
