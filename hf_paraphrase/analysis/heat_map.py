"""Numbers between the words of two texts, as a table with coloured cells that reads well on light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["format_heat_map"]

# Red-green-blue of what is above and below 0, over whatever the page's background is. No cell is quite opaque, so that
# its number can be read both in black and in white.
WARM, COLD = "214, 92, 24", "38, 110, 214"
MOST_OPAQUE = 0.7


def format_heat_map(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """Make an HTML table of numbers from -1 to 1, which it shows in percent, in a box that may scroll sideways.

    Args:
        rows: A word for each row.
        columns: A word for each column.
        values: `(rows, columns)`.
    """
    head = "".join(f'<th class="column">{html.escape(word)}</th>' for word in columns)
    lines = [
        f"<tr><th>{html.escape(word)}</th>{''.join(map(_format_cell, cells))}</tr>"
        for word, cells in zip(rows, values, strict=True)
    ]
    table = "\n".join(["<table>", f"<tr><th></th>{head}</tr>", *lines, "</table>"])
    return f'<div class="heat-map">\n{table}\n</div>'


def _format_cell(value: float) -> str:
    colour = COLD if value < 0 else WARM
    return f'<td style="background: rgba({colour}, {MOST_OPAQUE * abs(value):.2f})">{100 * value:.0f}</td>'
