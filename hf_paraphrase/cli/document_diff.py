"""What changed in a document, word by word: for the terminal and as a page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from html import escape
from typing import TYPE_CHECKING

import typer

from .terminal import make_printable

if TYPE_CHECKING:
    from ..generation.documents import SentenceChange

__all__ = ["echo_diff", "make_diff_page"]

WORD = re.compile(r"\s+|\w+|[^\w\s]")
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 1rem/1.6 sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
del {{ background: #ffd7d5; color: #82071e }} ins {{ background: #ccffd8; color: #055d20; text-decoration: none }}
li {{ margin: 0.5rem 0 }}</style></head>
<body><h1>{title}</h1><ol>
{items}
</ol></body></html>
"""


def _compare(before: str, after: str) -> Iterator[tuple[str, str]]:
    """What stayed, went (-) and came (+), in order."""
    old, new = WORD.findall(before), WORD.findall(after)
    # Without `autojunk` frequent words of a long sentence count too.
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield " ", "".join(old[first:last])
            continue
        if last > first:
            yield "-", "".join(old[first:last])
        if end > start:
            yield "+", "".join(new[start:end])


def echo_diff(changes: Iterable[SentenceChange]) -> None:
    """Print each rewritten sentence with `[-what went-]` and `{+what came+}`, in colours on a terminal alone."""
    is_coloured = sys.stdout.isatty()
    for change in changes:
        if change.after is None:
            continue
        shown = []
        for sign, text in _compare(change.before, change.after):
            text = make_printable(text)
            if sign != " ":
                text = f"[-{text}-]" if sign == "-" else f"{{+{text}+}}"
                text = typer.style(text, fg="red" if sign == "-" else "green") if is_coloured else text
            shown.append(text)
        typer.echo(f"{change.line}: {''.join(shown)}")


def make_diff_page(title: str, changes: Iterable[SentenceChange]) -> str:
    """Write an HTML page of the rewritten sentences, in which what went is `del` and what came `ins`."""
    forms = {" ": "{}", "-": "<del>{}</del>", "+": "<ins>{}</ins>"}
    items = [
        f'<li value="{change.line}">'
        + "".join(forms[sign].format(escape(text)) for sign, text in _compare(change.before, change.after))
        + "</li>"
        for change in changes
        if change.after is not None
    ]
    return PAGE.format(title=escape(title), items="\n".join(items))
