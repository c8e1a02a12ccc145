from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from datasets import Dataset

__all__ = ["fingerprint", "token_counts", "value_counts"]


def token_counts(encoded: Dataset, column: str) -> np.ndarray:
    """The number of elements in each row's list of a column, without making Python objects of them."""
    return np.diff(_read_column(encoded, column).offsets)


def value_counts(encoded: Dataset, column: str, size: int) -> np.ndarray:
    """The count of each number below `size` in the lists of a column, `(size,)`."""
    return np.bincount(_read_column(encoded, column).flatten().to_numpy(), minlength=size)


def fingerprint(encoded: Dataset) -> str:
    """A digest of all numbers in all columns and of where lists end."""
    digest = hashlib.sha256()
    for column in sorted(encoded.column_names):
        values = _read_column(encoded, column)
        while pa.types.is_list(values.type):
            digest.update(np.diff(values.offsets))
            values = values.flatten()
        digest.update(values.to_numpy(zero_copy_only=False))
    return digest.hexdigest()


def _read_column(encoded: Dataset, column: str) -> pa.Array:
    return encoded.with_format("arrow")[:][column].combine_chunks()
