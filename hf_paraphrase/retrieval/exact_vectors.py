"""Vectors in half precision in a file, by which what an index of codes has found is compared exactly."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from ..errors import InputError

ROWS_AT_ONCE = 100_000


class ExactVectors:
    """Vectors that stay on disk: a search reads those that it is about.

    Args:
        dimension: Their size.
        path: A file of them to begin with; None for none.

    Raises:
        InputError: The file is not a whole number of vectors.
    """

    def __init__(self, dimension: int, path: Path | None = None):
        self.dimension, self.count = dimension, 0
        self._file = tempfile.TemporaryFile() if path is None else path.open("rb")  # noqa: SIM115 (as long as this lives)
        if path is not None:
            size, row = path.stat().st_size, 2 * dimension
            if size % row or not size:
                raise InputError(f"{path} has {size} bytes, not some vectors of {row}")
            self.count = size // row
        self._is_read = path is not None

    def append(self, vectors: np.ndarray) -> None:
        """Add vectors, `(count, dimension)`; those of a file are copied first."""
        if self._is_read:
            copy = tempfile.TemporaryFile()  # noqa: SIM115
            self._file.seek(0)
            shutil.copyfileobj(self._file, copy)
            self._file, self._is_read = copy, False
        self._file.seek(0, 2)
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            self._file.write(vectors[start : start + ROWS_AT_ONCE].astype(np.float16).tobytes())
        self._file.flush()
        self.count += len(vectors)

    def write(self, path: Path) -> None:
        """Write them to a file that `path` of the class reads."""
        self._file.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(self._file, file)

    def rank(self, queries: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Choose the nearest among what was found.

        Args:
            queries: `(queries, dimension)`.
            rows: Numbers of vectors, `(queries, found)`; -1 for none.
            k: How many to choose, at most `found`.

        Returns:
            Products and numbers, `(queries, k)`, the highest first.
        """
        vectors = self._map()
        scores = np.full(rows.shape, -np.inf, np.float32)
        for query, found, row in zip(queries, rows, scores, strict=True):
            there = found >= 0
            row[there] = vectors[found[there]].astype(np.float32) @ query
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best, numbers = (np.take_along_axis(each, order, 1) for each in (scores, rows))
        return np.where(numbers < 0, 0, best), numbers

    def kth_score(self, queries: np.ndarray, k: int) -> np.ndarray:
        """The product of each query with its k-th nearest of all vectors, `(queries,)`."""
        vectors, best = self._map(), np.full((len(queries), k), -np.inf, np.float32)
        for start in range(0, self.count, ROWS_AT_ONCE):
            products = queries @ vectors[start : start + ROWS_AT_ONCE].astype(np.float32).T
            best = -np.partition(-np.concatenate([best, products], axis=1), k - 1, axis=1)[:, :k]
        return best.min(axis=1)

    def _map(self) -> np.memmap:
        return np.memmap(self._file, np.float16, "r", shape=(self.count, self.dimension))
