from __future__ import annotations

import csv
import functools
import gzip
import json
import logging
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..files import open_plain_or_gzipped

__all__ = ["CorpusReader"]

logger = logging.getLogger(__name__)

BLOCK_SIZE = 1 << 20
MAX_LINE_LENGTH = 1 << 20
# So many bad lines are spelled out in the warning.
REPORTED = 5
# A file of which most lines are bad is given up after so many of them: it is another file.
PATIENCE = 1000
# A quoted field that goes on for more lines than these has lost its closing quote.
MAX_RECORD_LINES = 20
BOM = b"\xef\xbb\xbf"


class CorpusReader:
    """Reads text files line by line, plain or gzipped, and keeps count of the lines that are damaged.

    Used as a context, over all files of a corpus: when it ends, it warns of the bad lines, or refuses the corpus where
    they are too many. Memory stays at a few blocks whatever the files hold.

    Args:
        max_bad_fraction: The share of bad lines that is left out with a warning.
        layout: What the files should look like and where to get them, for errors.
        unit: What is counted, where it is not lines.

    Attributes:
        lines_read: Lines so far, without blank ones.
        bad_lines: Those of them that are damaged.
    """

    def __init__(self, max_bad_fraction: float, layout: str, unit: str = "lines"):
        self.max_bad_fraction = max_bad_fraction
        self.layout = layout
        self.unit = unit
        self.lines_read = 0
        self.bad_lines = 0
        self._reports: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: Any) -> None:
        # A reader left early, by an error or by somebody who wants only the first rows, has no share to judge.
        if kind is None:
            self._judge()

    def reject(self, path: Path, number: int, problem: str) -> None:
        """Count a line as bad.

        Args:
            path: The file.
            number: The line, from 1.
            problem: What is wrong, such as `has 2 columns, not 3`.

        Raises:
            InputError: Most of very many lines are bad.
        """
        self.bad_lines += 1
        if len(self._reports) < REPORTED:
            self._reports.append(f"{path}, line {number}, {problem}")
        if self.bad_lines >= PATIENCE and 2 * self.bad_lines > self.lines_read:
            self._judge()

    def blocks(self, path: Path) -> Iterator[tuple[int, str]]:
        """Read many lines at a time.

        Yields:
            The number of the first line, and the lines with a newline between them; a line that cannot be read is
            empty.

        Raises:
            InputError: The file is not the gzip file it seems to be.
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
        """Read every line that is not blank, with its number.

        Raises:
            InputError: As `blocks`.
        """
        for first, text in self.blocks(path):
            lines = text.split("\n")
            self.lines_read += len(lines) - lines.count("")
            for number, line in enumerate(lines, first):
                if line:
                    yield number, line

    def rows(
        self,
        path: Path,
        columns: Sequence[str],
        separator: str = "\t",
        header: bool = False,
        optional: int = 0,
        quoted: bool = False,
    ) -> Iterator[tuple[int, list[str]]]:
        """Read lines of separated fields; one with another number of fields is bad.

        Args:
            path: The file.
            columns: The names of the fields.
            separator: What stands between them.
            header: The first line names the fields, and has to name these.
            optional: So many of the last fields may be missing; they are read as empty.
            quoted: Fields may stand in double quotes, then also over several lines, as in csv files.

        Raises:
            InputError: The header is another one; or as `blocks`.
        """
        lines = self.lines(path)
        if header:
            self._check_header(path, next(lines, (1, ""))[1], columns, separator, quoted)
        most = len(columns)
        allowed = range(most - optional, most + 1)
        if quoted:
            records = _quoted(lines, separator, allowed)
        else:
            records = ((number, line.split(separator)) for number, line in lines)
        for number, fields in records:
            if len(fields) in allowed:
                yield number, fields + [""] * (most - len(fields))
            else:
                self.reject(path, number, f"has {len(fields)} columns, not {most}")

    def header(self, path: Path, separator: str) -> list[str]:
        """The names in the first line of a file, which may be quoted."""
        for _, line in CorpusReader(self.max_bad_fraction, self.layout).lines(path):
            return [name.strip() for name in _parse(line, separator) or []]
        raise InputError(f"{path} is empty; {self.layout}")

    def columns(
        self, path: Path, columns: Sequence[str], wanted: Sequence[str], separator: str = "\t", optional: int = 0
    ) -> Iterator[list[pa.Array]]:
        """Read columns of many lines at a time, for corpora so large that Python's work on every line counts.

        As in `rows`, a line with another number of fields is bad; and so is one without text in a wanted field.

        Args:
            path: The file.
            columns: The names of the fields.
            wanted: The names of those that are read.
            separator: What stands between the fields.
            optional: So many of the last fields may be missing; none of them is wanted.

        Yields:
            The texts of each wanted column, without white space around them.

        Raises:
            InputError: As `blocks`.
        """
        most = len(columns)
        for first, text in self.blocks(path):
            lines = pc.split_pattern(pa.array([text]), "\n").flatten()
            written = pc.not_equal(lines, "")
            self.lines_read += pc.sum(written).as_py() or 0
            fields = pc.split_pattern(lines, separator)
            counts = pc.list_value_length(fields)
            sound = pc.and_(pc.greater_equal(counts, most - optional), pc.less_equal(counts, most))
            for at in _places(pc.and_not(written, sound)):
                self.reject(path, first + at, f"has {counts[at]} columns, not {most}")
            rows = pc.indices_nonzero(sound)
            starts = fields.offsets.take(rows)
            texts = [
                pc.utf8_trim_whitespace(fields.values.take(pc.add(starts, columns.index(name)))) for name in wanted
            ]
            whole = functools.reduce(pc.and_, (pc.not_equal(column, "") for column in texts))
            for at in _places(pc.invert(whole)):
                empty = next(name for name, column in zip(wanted, texts, strict=True) if not column[at].as_py())
                self.reject(path, first + rows[at].as_py(), f"has no {empty}")
            yield texts if whole.true_count == len(whole) else [column.filter(whole) for column in texts]

    def json_lines(self, path: Path, fields: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read JSON objects, one a line; one in which some of `fields` are no text is bad.

        Raises:
            InputError: As `blocks`.
        """
        for number, line in self.lines(path):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.reject(path, number, f"is not JSON ({error})")
                continue
            if not isinstance(record, dict):
                self.reject(path, number, "is not a JSON object")
                continue
            wrong = [name for name in fields if not _is_text(record.get(name))]
            if wrong:
                self.reject(path, number, f"has no text in {', '.join(wrong)}")
            else:
                yield number, record

    def _whole_lines(self, path: Path, file: BinaryIO) -> Iterator[bytes]:
        rest = b""
        first = True
        while chunk := self._read(path, file):
            if first:
                chunk, first = chunk.removeprefix(BOM), False
            block, newline, tail = chunk.rpartition(b"\n")
            if newline:
                yield rest + block
                rest = b""
            # One more than is allowed shows that the line is too long; the remainder is not kept.
            rest = (rest + tail)[: MAX_LINE_LENGTH + 1]
        if rest:
            yield rest

    def _read(self, path: Path, file: BinaryIO) -> bytes:
        try:
            return file.read(BLOCK_SIZE)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path} is a damaged gzip file ({error}); get it anew: {self.layout}") from error

    def _decode(self, path: Path, number: int, block: bytes) -> str:
        try:
            text = block.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text or (len(block) > MAX_LINE_LENGTH and max(map(len, block.split(b"\n"))) > MAX_LINE_LENGTH):
            lines = enumerate(block.split(b"\n"), number)
            text = "\n".join(self._decode_line(path, at, line) for at, line in lines)
        return "\n".join(line.strip("\r") for line in text.split("\n")) if "\r" in text else text

    def _decode_line(self, path: Path, number: int, line: bytes) -> str:
        problem = None
        if len(line) > MAX_LINE_LENGTH:
            problem = f"is longer than {MAX_LINE_LENGTH:,} bytes"
        elif b"\0" in line:
            problem = f"has a NUL at byte {line.index(0) + 1}"
        else:
            try:
                return line.decode()
            except UnicodeDecodeError as error:
                problem = f"is not UTF-8 at byte {error.start + 1}"
        self.lines_read += 1
        self.reject(path, number, problem)
        return ""

    def _check_header(self, path: Path, line: str, columns: Sequence[str], separator: str, quoted: bool) -> None:
        fields = _parse(line, separator) or [] if quoted else line.split(separator)
        names = [name.strip().lower() for name in fields]
        if names != [name.lower() for name in columns]:
            raise InputError(
                f"{path}, line 1, is not the header {separator.join(columns)!r} but {line[:200]!r}; {self.layout}"
            )

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


def _quoted(lines: Iterator[tuple[int, str]], separator: str, allowed: range) -> Iterator[tuple[int, list[str]]]:
    """Split lines whose fields may be quoted; a quote that is closed nowhere, or oddly, stands for itself."""
    ahead: deque[tuple[int, str]] = deque()
    while following := ahead.popleft() if ahead else next(lines, None):
        number, line = following
        fields = _parse(line, separator)
        record, used = line, 0
        while fields is None and used < MAX_RECORD_LINES:
            if used == len(ahead):
                ahead.extend(islice(lines, 1))
            if used == len(ahead):
                break
            record = f"{record}\n{ahead[used][1]}"
            used += 1
            fields = _parse(record, separator)
        if used and fields is not None and len(fields) in allowed:
            for _ in range(used):
                ahead.popleft()
        elif used or not fields:
            fields = line.split(separator)
        yield number, fields


def _parse(record: str, separator: str) -> list[str] | None:
    """Split a record; no fields where its quotes make no sense, None while one is open."""
    if '"' not in record:
        return record.split(separator)
    try:
        return next(csv.reader([record], delimiter=separator, strict=True))
    except csv.Error as error:
        return None if "unexpected end" in str(error) else []


def _places(mask: pa.Array) -> list[int]:
    return pc.indices_nonzero(mask).to_pylist()


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair, which is no character.
        return False
    return True
