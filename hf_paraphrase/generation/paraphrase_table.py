"""The results of `Paraphraser`: lists that terminals and notebooks show as tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from html import escape

from .paraphrase_choice import SCORES, Paraphrase

# More texts than these are only counted.
MOST_SHOWN = 10


class Paraphrases(list[Paraphrase]):
    """The paraphrases of a text, the best first.

    Args:
        paraphrases: The chosen ones, then rejected ones if requested.
        refusal: Why the model refused the text; None where it did not.
    """

    def __init__(self, paraphrases: Iterable[Paraphrase] = (), source: str = "", refusal: str | None = None):
        super().__init__(paraphrases)
        self.source, self.refusal = source, refusal

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in _lines(self))

    def _repr_html_(self) -> str:
        return _html([self])


class ParaphrasedTexts(list[Paraphrases]):
    """The paraphrases of several texts, in the order of the texts."""

    def __repr__(self) -> str:
        shown = [f"{group.source}\n{group!r}" for group in self[:MOST_SHOWN]]
        return "\n\n".join([*shown, *_count_rest(self)])

    def _repr_html_(self) -> str:
        rest = "".join(f"<p>{line}</p>" for line in _count_rest(self))
        return _html(self[:MOST_SHOWN], with_source=True) + rest


def _lines(group: Paraphrases) -> list[str]:
    if not group:
        return [_describe_lack(group)]
    header = ["score", *SCORES, "text"]
    lines = ["  ".join(header)]
    for one in group:
        cells = [f"{cell:>{len(name)}}" for name, cell in zip(header, _cells(one), strict=False)]
        reason = f"[{one.reason}] " if one.reason else ""
        lines.append("  ".join([*cells, f"{reason}{one.text}"]))
    return lines


def _describe_lack(group: Paraphrases) -> str:
    return f"(no paraphrase: {group.refusal})" if group.refusal else "(no paraphrase)"


def _cells(one: Paraphrase) -> list[str]:
    return [
        "-" if value is None else f"{value:.2f}" for value in (one.score, *(getattr(one, name) for name in SCORES))
    ]


def _html(groups: Sequence[Paraphrases], with_source: bool = False) -> str:
    has_reasons = any(one.reason for group in groups for one in group)
    header = [*["source"] * with_source, "text", "score", *SCORES, *["rejected because it"] * has_reasons]
    rows = []
    for group in groups:
        source = f'<td rowspan="{max(1, len(group))}">{escape(group.source)}</td>' if with_source else ""
        for one in group or [Paraphrase(_describe_lack(group))]:
            cells = [one.text, *_cells(one), *[one.reason or ""] * has_reasons]
            rows.append(f"<tr>{source}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
            source = ""
    titles = "".join(f"<th>{title}</th>" for title in header)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _count_rest(groups: Sequence[Paraphrases]) -> list[str]:
    rest = len(groups) - MOST_SHOWN
    return [f"… and {rest} more texts"] if rest > 0 else []
