from __future__ import annotations

import os
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..common.errors import InputError
from ..common.files import bounded_lines, open_plain_or_gzipped

# A word of word2vec's binary format that is longer, in bytes, shows that the file is another one.
LONGEST_WORD = 1 << 16


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors `(words, dimension)` and the row of each word, named as in gensim's `KeyedVectors`."""

    key_to_index: dict[str, int]
    vectors: np.ndarray


def load_word_vectors(path: str | os.PathLike, vocabulary: Container[str] | None = None) -> WordVectors:
    """Read a file of word vectors, holding only the wanted ones in memory.

    A file named `.bin` is in word2vec's binary format, as Google News's vectors are. All others are text, `word v1 v2
    …` on each line, as GloVe, word2vec and fastText write it. Both may be gzipped.

    Args:
        path: The file; in text a first line of two numbers, word2vec's header, is skipped.
        vocabulary: Only these words are kept; None for all. Of a word that comes twice the first vector counts.

    Raises:
        InputError: A malformed vector, another dimension, or another format; the message names the line of a text
            file, or the number of the word.
        FileNotFoundError: There is no such file.
    """
    path = Path(path)
    kept: dict[str, np.ndarray] = {}

    def wants(word: str) -> bool:
        return word not in kept and (vocabulary is None or word in vocabulary)

    is_binary = path.name.removesuffix(".gz").endswith(".bin")
    with open_plain_or_gzipped(path) as file:
        dimension = (_read_binary if is_binary else _read_text)(path, file, wants, kept)
    vectors = np.array(list(kept.values()), dtype=np.float32).reshape(len(kept), dimension)
    return WordVectors({word: place for place, word in enumerate(kept)}, vectors)


def _read_text(path: Path, file: BinaryIO, wants: Callable[[str], bool], kept: dict[str, np.ndarray]) -> int:
    """Keep the vectors of the words that are wanted, and return the number of numbers of each."""
    dimension = None
    for number, line in enumerate(bounded_lines(file, path), start=1):
        try:
            # Some words hold spaces of other kinds; vectors do not.
            fields = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip().split(" ")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}, line {number}, is not UTF-8 at byte {error.start + 1}; word2vec's binary format is read "
                "from files named .bin"
            ) from error
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        dimension = dimension or len(fields) - 1
        word = " ".join(fields[:-dimension])
        if wants(word):
            kept[word] = _parse_vector(fields[-dimension:], word, f"{path}, line {number}")
    if dimension is None:
        raise InputError(f"{path} holds no vectors")
    return dimension


def _parse_vector(fields: list[str], word: str, place: str) -> np.ndarray:
    with suppress(ValueError):
        vector = np.array(fields, dtype=np.float32)
        if word and np.isfinite(vector).all():
            return vector
    raise InputError(f"{place}: expected a word and {len(fields)} numbers, as on the lines before it")


def _read_binary(path: Path, file: BinaryIO, wants: Callable[[str], bool], kept: dict[str, np.ndarray]) -> int:
    """The same of word2vec's format: a line of two numbers, then for each word its bytes, a space and float32s."""
    header = file.readline(64).split()
    if len(header) != 2 or not all(field.isdigit() for field in header):
        raise InputError(
            f"{path} does not begin with a line of two numbers, of words and of numbers a word, as word2vec's binary "
            "format does; text files are read where they have another name than .bin"
        )
    size, dimension = map(int, header)
    for number in range(1, size + 1):
        # Words need not be UTF-8: word2vec cuts long ones anywhere.
        word = _read_word(file).decode(errors="replace")
        content = file.read(4 * dimension)
        if not word or len(content) < 4 * dimension:
            raise InputError(
                f"{path}, word {number} of {size}: expected a word and {dimension} numbers, but the file ends at byte "
                f"{file.tell()} or is damaged before it"
            )
        if wants(word):
            vector = np.frombuffer(content, dtype="<f4")
            if not np.isfinite(vector).all():
                raise InputError(f"{path}, word {number} of {size} ({word}): not all of its numbers are finite")
            kept[word] = vector
    return dimension


def _read_word(file: BinaryIO) -> bytes:
    """Read up to the next space; nothing if there is none. Some writers end vectors by a newline."""
    word = b""
    while (buffered := file.peek(1)) and len(word) < LONGEST_WORD:
        end = buffered.find(b" ")
        if end >= 0:
            return (word + file.read(end + 1)[:-1]).lstrip(b"\n")
        word += file.read(len(buffered))
    return b""
