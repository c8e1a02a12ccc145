from __future__ import annotations

import atexit
import codecs
import gzip
import hashlib
import io
import json
import logging
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, Any, AnyStr, BinaryIO, TextIO

from filelock import FileLock, SoftFileLock, Timeout

from .bounds import check_bound, read_bound
from .errors import InputError

logger = logging.getLogger(__name__)

LOCK_FILE = ".run.lock"
# How long to wait for what an owner that died left to be found stale.
LOCK_SECONDS = 3.0
# Larger files are known by size and time of change: reading them through would take longer than what is asked for.
HASHED_SIZE = 64 << 20


def check_links(folder: Path, file: str | None = None) -> None:
    """Raise InputError where a folder has symbolic links out of it: its author would choose which files are read.

    Args:
        folder: All of it is searched.
        file: The file in it that the user asked for, by a link or not. The folder may then be a home folder: only the
            files right beside it count, but for hidden ones.
    """
    root = folder.resolve()
    roots = [root]
    if root.parent.name == "snapshots":  # of the Hub's cache, which keeps what is in the files beside it
        roots.append(root.parents[1] / "blobs")
    paths = (path for path in folder.glob("[!.]*") if path.is_file() and path.name != file)
    for path in folder.rglob("*") if file is None else paths:
        if path.is_symlink() and not any(path.resolve().is_relative_to(one) for one in roots):
            raise InputError(f"{path} is a link that leads out of {folder}: put a copy there in its place")


SURROGATES = re.compile("[\ud800-\udfff]")


@contextmanager
def open_text(path: str | os.PathLike, **kwargs: Any) -> Iterator[TextIO]:
    """Open a file of UTF-8 text, plain or gzipped, for reading; `kwargs` are those of `open`.

    Raises:
        InputError: It turns out, inside the `with` block, not to be UTF-8, or to be a gzip file that is damaged or
            unpacks to more than `HF_PARAPHRASE_MAX_UNPACKED_BYTES`.
    """
    try:
        with io.TextIOWrapper(open_plain_or_gzipped(Path(path)), **{"encoding": "utf-8", **kwargs}) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not valid UTF-8 ({_find_undecodable(Path(path), error)})") from error


def _find_undecodable(path: Path, error: UnicodeDecodeError) -> str:
    """The problem and its position in the whole file; the error counts from the last chunk."""
    if not path.is_file():
        return error.reason
    with open_plain_or_gzipped(path) as file:
        done = 0
        for number, line in enumerate(bounded_lines(file, path), start=1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "it begins as UTF-16 does, line 1: save it as UTF-8"
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as found:
                return f"{found.reason} at byte {done + found.start + 1}, line {number}"
            done += len(line)
    return error.reason


def check_unicode(text: str, where: str, errors: str = "strict") -> str:
    """Return a text without halves of surrogate pairs, which no model and no file takes.

    With `errors` "replace", U+FFFD stands in the place of each; with "strict", InputError says `where` the first is.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        if errors == "replace":
            return SURROGATES.sub("\ufffd", text)
        raise InputError(f"{where}: half of a surrogate pair, no character, at place {error.start + 1}") from error
    return text


def bounded_lines(file: IO[AnyStr], source: str | os.PathLike) -> Iterator[AnyStr]:
    """The lines of an open file; InputError names `source` where one exceeds `HF_PARAPHRASE_MAX_LINE_LENGTH`."""
    longest, number = read_bound("LINE_LENGTH"), 0
    while line := file.readline(longest + 1):
        number += 1
        check_bound("LINE_LENGTH", len(line), f"{source}, line {number}: its length")
        yield line


class _BoundedGzip(io.RawIOBase):
    """The bytes of a gzip file, up to a bound, since a small file can unpack to any size; InputError for damage."""

    def __init__(self, path: Path):
        self.path, self.file, self.unpacked = path, gzip.GzipFile(path), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self.file.readinto(buffer)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.path} is a damaged gzip file ({error})") from error
        self.unpacked += count
        check_bound("UNPACKED_BYTES", self.unpacked, f"{self.path}: its unpacked size")
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def open_plain_or_gzipped(path: Path) -> BinaryIO:
    """Open a file for reading bytes; gzip is detected by content, not by name.

    Reading raises InputError where it is damaged or unpacks to more than `HF_PARAPHRASE_MAX_UNPACKED_BYTES`.
    """
    if not path.is_file():  # a named pipe, which can be read once
        return path.open("rb")
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return io.BufferedReader(_BoundedGzip(path), io.DEFAULT_BUFFER_SIZE) if zipped else path.open("rb")


def ends_lines_in_returns(start: bytes) -> bool:
    """Whether lines end in carriage returns alone, as old spreadsheets write them, judged by the start of the file."""
    return b"\r" in start[:-1] and b"\n" not in start


def use_writable_folders(config: ModuleType, *names: str) -> None:
    """Have a library of Hugging Face keep its files in temporary folders where it cannot write to its cache.

    The folders are `names` in its module `config`.
    """
    for name in names:
        folder = Path(getattr(config, name))
        writable = writable_folder(folder)
        if writable != folder:
            setattr(config, name, type(getattr(config, name))(writable))


@cache
def writable_folder(folder: Path) -> Path:
    """Make a folder; if it is not writable, warn and make a temporary one."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="hf-paraphrase-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    logger.warning("%s cannot be written: using %s until this process ends; set HF_HOME to keep it", folder, temporary)
    return temporary


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other runs out of an output folder; a lock whose owner died on this machine is taken over.

    The folder is made where it is not there, and goes again if nothing was written into it. InputError says that
    another run works there.
    """
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    lock = SoftFileLock(directory / LOCK_FILE)
    try:
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout:
        owner = " on ".join((directory / LOCK_FILE).read_text(encoding="utf-8").split()[:2])
        raise InputError(
            f"another run works in {directory} (process {owner}): wait for it, stop it, or name another folder; "
            f"if that machine is gone, remove {directory / LOCK_FILE}"
        ) from None
    try:
        yield
    finally:
        lock.release()
        if is_new:
            with suppress(OSError):  # which says that it is not empty
                directory.rmdir()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file atomically, even if the process or the machine stops.

    Yields where to write; when the `with` block ends without an error, the file moves to `path`, with the permissions
    of the one before. A device or a pipe, such as /dev/null, is written to directly.
    """
    is_there = path.exists() and not path.is_symlink()
    if is_there and not path.is_file():
        yield path
        return
    temporary = _temporary(path)
    try:
        yield temporary
        if is_there:
            shutil.copymode(path, temporary)
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, newline: str | None = None) -> None:
    """Write a UTF-8 text file atomically; an empty `newline` leaves the line ends as they are on every system."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline=newline)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON Lines, whole or not at all."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all: a line for each field, and one for each item of a list of objects."""
    lines = []
    for name, value in record.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            text = "[\n" + ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in value) + "\n ]"
        lines.append(f" {json.dumps(name)}: {text}")
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse JSON; `where` names the file, with a line number if needed, in errors.

    Raises:
        InputError: It is not JSON, nests too deeply, or has an integer of more digits than Python reads.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(f"{where} is not valid JSON: it nests too deeply") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not valid JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not valid JSON: it is not UTF-8 at byte {error.start + 1}") from error
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON: {describe_digits(error)}") from error


def script_json(value: Any) -> str:
    """JSON for a `<script>`: no text in it ends the script, or begins a comment that swallows the page."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def describe_digits(error: ValueError) -> str:
    """What Python says of an integer with too many digits, and how a user raises its limit."""
    return f"{error}; if you trust the file, set PYTHONINTMAXSTRDIGITS to raise the limit"


def read_json_object(path: Path, name: str | None = None) -> dict[str, Any]:
    """Read a file of one JSON object, or raise InputError, in which `name` stands for the file."""
    values = parse_json(path.read_bytes(), name or str(path))
    if not isinstance(values, dict):
        raise InputError(f"{name or path} must hold one JSON object, not a {type(values).__name__}")
    return values


def read_lines(path: Path) -> list[Any]:
    """Read what `write_lines` wrote; InputError names a line that is not JSON."""
    # Not `splitlines`, which also cuts at characters that JSON has inside of a text.
    lines = enumerate(path.read_bytes().split(b"\n"), start=1)
    return [parse_json(line, f"{path}, line {number}") for number, line in lines if line]


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of_file(path: Path) -> str:
    """What changes with the contents of a file."""
    status = path.stat()
    if status.st_size > HASHED_SIZE:
        return f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    return hash_file(path)


def copy_file(source: Path, path: Path) -> None:
    """Copy a file atomically."""
    with whole_file(path) as temporary:
        shutil.copyfile(source, temporary)


def write_directory(path: Path, write: Callable[[Path], None]) -> None:
    """Make a folder atomically, in place of one of its name: `write` fills the empty folder that it is handed."""
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        for file in temporary.rglob("*"):
            _flush(file)
        shutil.rmtree(path, ignore_errors=True)
        publish(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def make_once(path: Path, write: Callable[[Path], None]) -> None:
    """Make a folder atomically unless it exists; of concurrent processes, one makes it."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.is_dir():
                write_directory(path, write)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def publish(temporary: Path, path: Path) -> None:
    """Move a finished file or folder into place, durably."""
    # Without the flushes a power cut could leave a renamed file that is empty.
    _flush(temporary)
    os.replace(temporary, path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    if os.name == "nt":  # which flushes neither folders nor files opened to read
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
