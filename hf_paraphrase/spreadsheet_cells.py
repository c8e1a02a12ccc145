"""Cells that no spreadsheet runs as formulas: an apostrophe before the text, which our readers take away again."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["PARAPHRASE_COLUMNS", "quote_formula", "unquote_formulas"]

# The columns that `paraphrase --output` writes first: by them its files are told from those that people write.
PARAPHRASE_COLUMNS = ("row", "source", "rank", "text", "score", "adequacy", "fluency", "novelty")
# Texts with apostrophes of their own get one more, so that each text has a form of its own.
FORMULA = re.compile(r"'*[=+\-@\t\r]")
QUOTED = re.compile(r"'+[=+\-@\t\r]")


def quote_formula(text: str) -> str:
    """Write an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if FORMULA.match(text) else text


def unquote_formulas(columns: Sequence[str], cells: Sequence[str]) -> Sequence[str]:
    """Undo `quote_formula` in a row of a csv file that `paraphrase` wrote; any other row stays as it is."""
    if tuple(columns[: len(PARAPHRASE_COLUMNS)]) != PARAPHRASE_COLUMNS:
        return cells
    return [cell[1:] if QUOTED.match(cell) else cell for cell in cells]
