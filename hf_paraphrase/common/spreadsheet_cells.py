"""Files of csv and tsv whose cells are read again as they were, and which no spreadsheet runs as formulas.

Texts that look like formulas get a leading apostrophe, which our readers remove.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

# The first columns of `paraphrase --output`, which identify its files.
PARAPHRASE_COLUMNS = ("row", "source", "rank", "text", "score", "adequacy", "fluency", "novelty")
# Texts with apostrophes of their own get one more, so that each text has a form of its own.
FORMULA = re.compile(r"'*[=+\-@\t\r]")
QUOTED = re.compile(r"'+[=+\-@\t\r]")


def csv_writer(file: TextIO, columns: Sequence[str], delimiter: str = ",") -> csv.DictWriter:
    """Write the names of the columns to a file opened with `newline=""`, and return what writes the rows."""
    writer = csv.DictWriter(_NewlineEnds(file), columns, delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    return writer


class _NewlineEnds:
    """Ends records in a newline; the csv module quotes a carriage return in a cell only where records end in one."""

    def __init__(self, file: TextIO):
        self.file = file

    def write(self, record: str) -> int:
        return self.file.write(record.removesuffix("\r\n") + "\n")


def quote_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write an apostrophe before each text of a row that a spreadsheet would take for a formula."""
    return {name: f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell for name, cell in row.items()}


def unquote_formulas(columns: Sequence[str], cells: Sequence[str]) -> Sequence[str]:
    """Undo `quote_formulas` in a row of a csv file that `paraphrase` wrote; any other row stays as it is."""
    if tuple(columns[: len(PARAPHRASE_COLUMNS)]) != PARAPHRASE_COLUMNS:
        return cells
    return [cell[1:] if QUOTED.match(cell) else cell for cell in cells]
