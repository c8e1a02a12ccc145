from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.errors import InputError
from ..common.text_tables import LINE, Row, TextTable

# Names of fields and columns; the first existing one is used.
NAMES = {
    "prediction": ("prediction", "paraphrases"),
    "references": ("references", "reference", "target"),
    "source": ("source",),
}


@dataclass(frozen=True)
class ScoredTexts:
    """Outputs of one or several runs over the same test sentences, and what to score them against."""

    runs: list[list[str]]  # for each run its predictions
    references: list[list[str]]  # for each test sentence its references
    sources: list[str] | None  # the sources; None where nobody gave them


def read_scored_texts(
    predictions: Sequence[str | os.PathLike],
    references: Sequence[str | os.PathLike] = (),
    sources: str | os.PathLike | None = None,
    errors: str = "strict",
) -> ScoredTexts:
    """Read predictions of one or several runs with their references.

    The file ending decides the format (`text_tables`): a table, or one text per line. Columns are read by name:
    `prediction`, or of `paraphrases`, as `hf-paraphrase paraphrase --json` writes them, the first, or an empty text
    if there is none; `references`,
    `reference` or `target`; `source`.

    Args:
        predictions: A file for each run; those with names, such as what `hf-paraphrase evaluate` writes, may hold the
            references and the sources too.
        references: Files, the first reference of each sentence in the first and so on; an empty text says that a
            sentence has no further one. Without any, the references in the prediction files are used.
        sources: A file; None for those in the prediction files, if any.
        errors: "replace" reads invalid UTF-8 as U+FFFD.

    Raises:
        InputError: Files of different lengths, rows without the needed columns, or no references; the message names
            the file.
        FileNotFoundError: There is no such file.
    """
    read = [_File(Path(path), "prediction", errors) for path in predictions]
    streams = [_File(Path(path), "references", errors) for path in references]
    others = [] if sources is None else [_File(Path(sources), "source", errors)]
    files = [*read, *streams, *others]
    if len({len(file.rows) for file in files}) > 1:
        lengths = ", ".join(f"{file.table.path} {len(file.rows)}" for file in files)
        raise InputError(f"the files differ in length, in rows: {lengths}")
    runs = [[texts[0] if texts else "" for texts in file.field("prediction")] for file in read]
    if streams:  # whose empty texts say that there is no further reference
        columns = zip(*(file.field("references") for file in streams), strict=True)
        found = streams[-1].check_filled([sum(row, []) for row in columns], "references")
    else:
        found = read[0].check_filled(_shared(read, "references"), "references")
    return ScoredTexts(runs, found, _find_sources(read, others))


class _File:
    """The rows of a file; one of plain lines has the column `field` alone."""

    def __init__(self, path: Path, field: str, errors: str):
        self.table = TextTable(path, errors=errors)
        self.rows = list(self.table.rows())
        if self.table.kind == "txt":
            self.rows = [Row(row.line, {field: row.values[LINE]}) for row in self.rows]
        if not self.rows:
            raise InputError(f"{path} is empty")

    def field(self, field: str) -> list[list[str]]:
        """For each row the texts of one of the columns that go by a name; raises InputError where there is no such
        column, or no text."""
        advice = "; give --references" if field == "references" else ""
        columns = (self.table.column(row, NAMES[field], advice) for row in self.rows)
        return [self._texts(row, name) for row, name in zip(self.rows, columns, strict=True)]

    def _texts(self, row: Row, name: str) -> list[str]:
        if row.values[name] == [] and name != "paraphrases":  # of which a text may have none
            raise InputError(f"{self.table.place(row.line)}, column `{name}`: the list is empty")
        return self.table.texts(row, name)

    def check_filled(self, texts: list[list[str]], field: str) -> list[list[str]]:
        """Refuse rows without a text."""
        for row, found in zip(self.rows, texts, strict=True):
            if not found:
                raise InputError(f"{self.table.place(row.line)}: no text in `{field}`")
        return texts


def _shared(files: list[_File], field: str) -> list[Any]:
    first, *others = files
    values = first.field(field)
    for file in others:
        if file.field(field) != values:
            message = f"{first.table.path} and {file.table.path} differ in their {field}"
            raise InputError(f"{message}: they are over other test sentences")
    return values


def _find_sources(files: list[_File], others: list[_File]) -> list[str] | None:
    if others:
        found = others[0].field("source")
    elif all("source" in row.values for file in files for row in file.rows):
        found = _shared(files, "source")
    else:
        return None
    return [texts[0] if texts else "" for texts in found]
