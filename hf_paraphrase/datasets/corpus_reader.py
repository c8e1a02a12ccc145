from __future__ import annotations

import codecs
import functools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc

from ..common.errors import InputError
from ..common.files import ends_lines_in_returns, open_plain_or_gzipped
from ..common.text_tables import TextTable, parse_cells, split_records

logger = logging.getLogger(__name__)

BLOCK_SIZE = 1 << 20
# Longer lines, in bytes, count as damaged.
MAX_LINE_LENGTH = 1 << 20
# So many bad lines are spelled out in the warning.
REPORTED = 5
# Stop after this many bad lines if most are bad: the file has another format.
PATIENCE = 1000
BOM = codecs.BOM_UTF8
# The UTF-32 mark begins like the UTF-16 mark.
OTHER_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass
class CorpusReader:
    """Reads text files line by line, plain or gzipped, and keeps count of the lines that are damaged.

    Used as a context, over all files of a corpus: when it ends, it warns of the bad lines, or refuses the corpus where
    they are too many. Memory use is a few blocks, whatever the files contain. `lines_read` counts lines without blank
    ones, `bad_lines` the damaged ones, `nul_characters` those that were dropped.
    """

    max_bad_fraction: float
    layout: str
    unit: str = "lines"

    def __post_init__(self) -> None:
        self.lines_read = self.bad_lines = self.nul_characters = 0
        self._reports: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: Any) -> None:
        # A reader closed early, by an error or after the first rows, cannot judge the share.
        if kind is None:
            self._judge()
            if self.nul_characters:
                logger.warning("%s NUL characters are dropped", f"{self.nul_characters:,}")

    def without_nul(self, value: Any) -> Any:
        """Drop and count the NUL characters of a text, or of every text in a value as JSON or Parquet hold it."""
        if isinstance(value, str) and "\0" in value:
            self.nul_characters += value.count("\0")
            return value.replace("\0", "")
        if isinstance(value, list):
            return [self.without_nul(item) for item in value]
        if isinstance(value, dict):
            return {name: self.without_nul(item) for name, item in value.items()}
        return value

    def reject(self, path: Path, number: int, problem: str) -> None:
        """Count a line, from 1, as bad, for a problem such as `has 2 columns, not 3`; raises InputError where most of
        very many are."""
        self.bad_lines += 1
        if len(self._reports) < REPORTED:
            self._reports.append(f"{path}, {self.unit.removesuffix('s')} {number}, {problem}")
        if self.bad_lines >= PATIENCE and 2 * self.bad_lines > self.lines_read:
            self._judge()

    def blocks(self, path: Path) -> Iterator[tuple[int, str]]:
        """Read many lines at a time: the number of the first, and the lines with a newline between them; one that
        cannot be read is empty.

        Raises:
            InputError: The file is damaged gzip, unpacks to too much, or is UTF-16.
        """
        number = 1
        with open_plain_or_gzipped(path) as file:
            for block in self._whole_lines(path, file):
                yield number, self._decode(path, number, block)
                number += block.count(b"\n") + 1
        if number == 1:
            self.lines_read += 1
            self.reject(path, 1, "is missing: the file is empty")

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Read every line that is not blank, with its number; errors as `blocks`."""
        for first, text in self.blocks(path):
            lines = text.split("\n")
            self.lines_read += len(lines) - lines.count("")
            for number, line in enumerate(lines, first):
                if line:
                    yield number, line

    def rows(
        self, path: Path, columns: Sequence[str], header: bool = False, optional: int = 0, quoted: bool = False
    ) -> Iterator[tuple[int, list[str]]]:
        """Read lines of fields, separated by tabs; one with another number of fields is bad.

        Args:
            path: The file.
            columns: The names of the fields.
            header: The first line names the fields, and has to name these, or InputError is raised.
            optional: Number of trailing fields that may be missing; they are read as empty.
            quoted: Fields may be in double quotes. A stray quote costs no row but its own.
        """
        lines = self.lines(path)
        if header:
            line = next(lines, (1, ""))[1]
            names = (parse_cells(line, "\t") or []) if quoted else line.split("\t")
            if [name.strip().lower() for name in names] != [name.lower() for name in columns]:
                tabbed = "\t".join(columns)
                raise InputError(f"{path}, line 1, is not the header {tabbed!r} but {line[:200]!r}; {self.layout}")
        most = len(columns)
        allowed = range(most - optional, most + 1)
        if quoted:
            records = split_records(((number, f"{line}\n") for number, line in lines), "\t", allowed)
        else:
            records = ((number, line.split("\t")) for number, line in lines)
        for number, fields in records:
            if len(fields) in allowed:
                yield number, fields + [""] * (most - len(fields))
            else:
                self.reject(path, number, f"has {len(fields)} columns, not {most}")

    def cells(self, table: TextTable, names: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
        """Read the cells of some columns of a table, without NUL characters; raises InputError where it has none of a
        name."""
        is_text = table.kind != "parquet"
        # A reader of its own, for lines that will be counted when they are read once more.
        there = table.columns(replace(self).lines(table.path) if is_text else None)
        for name in names:
            if there is not None and name not in there:
                raise InputError(f"{table.path} has no column {name!r}; it has: {', '.join(there)}; {self.layout}")
        lines = ((number, f"{line}\n") for number, line in self.lines(table.path)) if is_text else None
        for row in table.rows(names, lines, self.reject):
            self.lines_read += not is_text
            yield row.line, [self.without_nul(row.values.get(name)) for name in names]

    def columns(
        self, path: Path, columns: Sequence[str], wanted: Sequence[str], separator: str = "\t", optional: int = 0
    ) -> Iterator[list[pa.Array]]:
        """Read columns of many lines at a time, for corpora so large that Python's work on every line counts.

        As in `rows`, a line with another number of fields is bad; and so is one without text in a wanted field.
        Trailing `optional` fields are ignored. Yields the texts of each wanted column, without white space around
        them.
        """
        most = len(columns)
        for first, text in self.blocks(path):
            lines = pc.split_pattern(pa.array([text]), "\n").flatten()
            written = pc.not_equal(lines, "")
            self.lines_read += pc.sum(written).as_py() or 0
            fields = pc.split_pattern(lines, separator)
            counts = pc.list_value_length(fields)
            sound = pc.and_(pc.greater_equal(counts, most - optional), pc.less_equal(counts, most))
            for at in pc.indices_nonzero(pc.and_not(written, sound)).to_pylist():
                self.reject(path, first + at, f"has {counts[at]} columns, not {most}")
            rows = pc.indices_nonzero(sound)
            starts = fields.offsets.take(rows)
            texts = [
                pc.utf8_trim_whitespace(fields.values.take(pc.add(starts, columns.index(name)))) for name in wanted
            ]
            whole = functools.reduce(pc.and_, (pc.not_equal(column, "") for column in texts))
            for at in pc.indices_nonzero(pc.invert(whole)).to_pylist():
                empty = next(name for name, column in zip(wanted, texts, strict=True) if not column[at].as_py())
                self.reject(path, first + rows[at].as_py(), f"has no {empty}")
            yield texts if whole.true_count == len(whole) else [column.filter(whole) for column in texts]

    def _whole_lines(self, path: Path, file: BinaryIO) -> Iterator[bytes]:
        rest = b""
        first, has_returns = True, False
        while chunk := file.read(BLOCK_SIZE):
            if first:
                if chunk.startswith(OTHER_BOMS):
                    raise InputError(f"{path} is UTF-16 or UTF-32, not UTF-8; convert it. {self.layout}")
                chunk, first, has_returns = chunk.removeprefix(BOM), False, ends_lines_in_returns(chunk)
            chunk = chunk.replace(b"\r", b"\n") if has_returns else chunk
            block, newline, tail = chunk.rpartition(b"\n")
            if newline:
                yield rest + block
                rest = b""
            # One more than is allowed shows that the line is too long; the remainder is not kept.
            rest = (rest + tail)[: MAX_LINE_LENGTH + 1]
        if rest:
            yield rest

    def _decode(self, path: Path, number: int, block: bytes) -> str:
        try:
            if len(block) > MAX_LINE_LENGTH and max(map(len, block.split(b"\n"))) > MAX_LINE_LENGTH:
                raise ValueError
            text = block.decode()
        except ValueError:
            lines = enumerate(block.split(b"\n"), number)
            text = "\n".join(self._decode_line(path, at, line) for at, line in lines)
        text = self.without_nul(text)
        return "\n".join(line.strip("\r") for line in text.split("\n")) if "\r" in text else text

    def _decode_line(self, path: Path, number: int, line: bytes) -> str:
        if len(line) > MAX_LINE_LENGTH:
            problem = f"is longer than {MAX_LINE_LENGTH:,} bytes"
        else:
            try:
                return line.decode()
            except UnicodeDecodeError as error:
                problem = f"is not UTF-8 at byte {error.start + 1}"
        self.lines_read += 1
        self.reject(path, number, problem)
        return ""

    def _judge(self) -> None:
        if not self.bad_lines:
            return
        share = f"{self.bad_lines:,} of {self.lines_read:,} {self.unit} are bad"
        examples = "; ".join(self._reports) + ("; …" if self.bad_lines > len(self._reports) else "")
        if self.bad_lines > self.max_bad_fraction * self.lines_read:
            raise InputError(
                f"{share}, more than `max_bad_fraction` = {self.max_bad_fraction:g} of them: {examples}; {self.layout}"
            )
        logger.warning("%s and left out: %s", share, examples)


def is_text(value: Any) -> bool:
    """Whether a value is text that UTF-8 can encode."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair, which is not a character.
        return False
    return True
