from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import InputError

__all__ = ["WordVectors", "load_word_vectors"]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors, with the two attributes of gensim's `KeyedVectors` that this package reads.

    Attributes:
        key_to_index: The row of each word.
        vectors: Array `(words, dimension)`.
    """

    key_to_index: dict[str, int]
    vectors: np.ndarray


def load_word_vectors(path: str | os.PathLike, vocabulary: Container[str] | None = None) -> WordVectors:
    """Read a text file of word vectors: `word v1 v2 …` on each line, as GloVe, word2vec and fastText write it.

    Args:
        path: The file; a first line of two numbers, word2vec's header, is skipped.
        vocabulary: Only these words are kept; None for all. Of a word that comes twice the first vector counts.

    Raises:
        InputError: A line that is no vector, or of another dimension; the message names it.
        FileNotFoundError: There is no such file.
    """
    key_to_index: dict[str, int] = {}
    vectors, dimension = [], None
    with Path(path).open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            # Some words hold spaces of other kinds; vectors do not.
            fields = line.rstrip().split(" ")
            if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
                continue
            dimension = dimension or len(fields) - 1
            word = " ".join(fields[:-dimension])
            if (vocabulary is not None and word not in vocabulary) or word in key_to_index:
                continue
            vectors.append(_parse_vector(fields[-dimension:], word, f"{path}, line {number}"))
            key_to_index[word] = len(key_to_index)
    if dimension is None:
        raise InputError(f"{path} holds no vectors")
    return WordVectors(key_to_index, np.array(vectors, dtype=np.float32).reshape(len(vectors), dimension))


def _parse_vector(fields: list[str], word: str, place: str) -> np.ndarray:
    try:
        vector = np.array(fields, dtype=np.float32)
    except ValueError:
        raise InputError(f"{place}: expected a word and {len(fields)} numbers, as on the lines before it") from None
    if not word or not np.isfinite(vector).all():
        raise InputError(f"{place}: expected a word and {len(fields)} numbers, as on the lines before it")
    return vector
