from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from datasets.exceptions import DatasetGenerationError

from ..common.bounds import check_bound
from ..common.errors import InputError
from ..common.text_tables import refusing_damage
from .encoders import SentenceEncoder, load_encoder

logger = logging.getLogger(__name__)

Pairs: TypeAlias = datasets.Dataset | Iterable[tuple[str, str]] | Iterable[Mapping[str, Any]]

COLUMNS = ["source", "target"]
FEATURES = datasets.Features({name: datasets.Value("string") for name in COLUMNS})
COMPARED = ("source", "pair")  # what of a pair a text may be compared with
ROWS_AT_ONCE = 10_000


class PairMemory:
    """Distinct sentence pairs in a `datasets.Dataset`, which keeps those of a file on disk.

    `keys` has the `sentence_keys` of the sources and of the targets, shape (2, pairs).

    Args:
        pairs: A dataset with the columns `source` and `target`, (source, target) tuples, or dicts with these keys.

    Raises:
        InputError: Something is not a pair of texts; the message says which.
    """

    def __init__(self, pairs: Pairs = ()):
        self.dataset = datasets.Dataset.from_dict({name: [] for name in COLUMNS}, features=FEATURES)
        self.keys = np.empty((2, 0), np.uint64)
        self._identities = np.empty(0, np.uint64)
        self.add(pairs)

    @classmethod
    def read(cls, path: Path) -> PairMemory:
        """Read a Parquet file through the cache of datasets, which maps it into memory; another format raises
        InputError."""
        with refusing_damage(f"{path} is not a Parquet file", DatasetGenerationError, AttributeError, TypeError):
            found = pq.read_schema(path).names
            if found != COLUMNS:
                raise InputError(f"{path} has the columns {', '.join(found)}, not source and target")
            size = 0
            # Read completely: datasets would report damage inside it late or never. A text that the file holds once
            # may be that of every row, and is unpacked later.
            with pq.ParquetFile(path, read_dictionary=COLUMNS) as file:
                check_bound("RETRIEVER_PAIRS", file.metadata.num_rows, f"{path}: the number of pairs")
                for batch in file.iter_batches(ROWS_AT_ONCE):
                    batch.validate(full=True)
                    size += sum(map(_count_bytes, batch.columns))
                    check_bound("RETRIEVER_BYTES", size, f"{path}: the number of bytes once unpacked")
            return cls(datasets.Dataset.from_parquet(str(path)))

    def write(self, path: Path) -> None:
        """Write all pairs to a Parquet file."""
        with pq.ParquetWriter(path, FEATURES.arrow_schema) as writer:
            for table in self.dataset.with_format("arrow").iter(ROWS_AT_ONCE):
                writer.write_table(table)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        columns = self.dataset[rows]
        return list(zip(columns["source"], columns["target"], strict=True))

    @property
    def checksum(self) -> str:
        """A hash of all pairs and their order."""
        return xxhash.xxh3_128_hexdigest(self._identities.tobytes())

    def add(self, pairs: Pairs) -> int:
        """Append pairs, duplicates once; returns how many were added."""
        dataset = _as_dataset(pairs)
        key_parts, identity_parts = [self.keys], [self._identities]
        for sources, targets in _batches(dataset):
            key_parts.append(np.stack([sentence_keys(sources), sentence_keys(targets)]))
            identity_parts.append(_hash(sources) * np.uint64(0x9E3779B97F4A7C15) + _hash(targets))
        identities, keys = np.concatenate(identity_parts), np.concatenate(key_parts, axis=1)
        first = np.sort(np.unique(identities, return_index=True)[1])
        new = first[first >= len(self)] - len(self)
        if len(new) < len(dataset):
            dataset = dataset.select(new)
        self.keys, self._identities = keys[:, first], identities[first]
        self.dataset = datasets.concatenate_datasets([self.dataset, dataset]) if len(self) else dataset
        return len(new)

    def read_compared(self, compare: str, start: int = 0) -> Iterator[list[str] | list[tuple[str, str]]]:
        """Yield what a text is compared with, "source" or "pair", from a row on, many at a time."""
        for first in range(start, len(self), ROWS_AT_ONCE):
            rows = range(first, min(first + ROWS_AT_ONCE, len(self)))
            yield self.dataset[rows]["source"] if compare == "source" else self[rows]


def _count_bytes(column: pa.Array) -> int:
    """The bytes of a column's texts, once those in a dictionary are written out."""
    if not isinstance(column, pa.DictionaryArray):
        return column.nbytes
    return pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0


def sentence_keys(texts: Iterable[str]) -> np.ndarray:
    """Hash sentences to `(texts,)` unsigned integers, the same for those that differ in case or in white space
    alone."""
    return _hash(" ".join(text.casefold().split()) for text in texts)


def pair_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Make keys of pairs from the keys of their sentences; both directions of a pair have the same key."""
    return first + second


def map_once(
    rows: datasets.Dataset,
    function: Callable[[dict[str, list]], dict[str, Any]],
    folder: str,
    state: str,
    *parameters: Any,
    **options: Any,
) -> datasets.Dataset:
    """Map batches of rows to other columns, or read these where they were made before.

    Args:
        rows: Columns of texts.
        function: Makes the new columns of a batch.
        folder: Where the results lie in the cache of datasets.
        state: What they depend on besides the rows, where datasets would hash all that the function holds.
        parameters: The same, further.
        options: Those of `Dataset.map`, such as `features`.
    """
    columns = [rows[name][:] for name in rows.column_names]
    key = xxhash.xxh3_64_hexdigest(f"{state}{[*parameters, *columns]!r}".encode())
    place = Path(datasets.config.HF_DATASETS_CACHE, folder)
    place.mkdir(parents=True, exist_ok=True)
    options |= {"cache_file_name": str(place / f"{key}.arrow"), "new_fingerprint": key}
    return rows.map(function, batched=True, remove_columns=rows.column_names, **options)


def filter_by_cosine(
    rows: datasets.Dataset, encoder: str | os.PathLike, min_cosine: float, *, trust_remote_code: bool = False
) -> datasets.Dataset:
    """Leave out the pairs whose two sentences a sentence encoder finds too little alike.

    The cosines are computed once and cached by datasets, keyed by the pairs and the encoder's files: another
    `min_cosine` computes nothing. A sentence that several neighbouring pairs share is encoded once.

    Args:
        rows: Has the columns `source` and `target`.
        encoder: A folder or Hub repository, as `load_encoder` takes it.
        min_cosine: Pairs of a lower cosine are left out.
        trust_remote_code: Let the repository's own code run.

    Raises:
        InputError: The encoder cannot be loaded.
    """

    @cache
    def load() -> SentenceEncoder:
        return load_encoder(encoder, trust_remote_code=trust_remote_code)

    def score(columns: dict[str, list[str]]) -> dict[str, np.ndarray]:
        texts = {text: place for place, text in enumerate(dict.fromkeys([*columns["source"], *columns["target"]]))}
        vectors = load()(list(texts))
        sides = [vectors[[texts[text] for text in columns[name]]] for name in ("source", "target")]
        return {"cosine": (sides[0] * sides[1]).sum(axis=1)}

    pairs = rows.select_columns(["source", "target"])
    features = datasets.Features({"cosine": datasets.Value("float32")})
    options = {"batch_size": ROWS_AT_ONCE, "features": features, "desc": "Comparing meanings"}
    # An encoder is known by its name, a folder also by the sizes of its files and when they changed.
    paths = sorted(path for path in Path(encoder).rglob("*") if path.is_file())
    files = [(str(path.relative_to(encoder)), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    scored = map_once(pairs, score, "cosines", repr([os.fspath(encoder), files]), **options)
    kept: list[int] | np.ndarray = []
    if len(rows):
        kept = np.flatnonzero(scored.with_format("numpy")["cosine"][:] >= min_cosine)
    if len(kept) < len(rows):
        message = "left out %d of %d pairs, whose cosine by %s is below %g"
        logger.warning(message, len(rows) - len(kept), len(rows), encoder, min_cosine)
    return rows.select(kept)


def count_each(keys: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The count of each key among others, of the shape of `keys`."""
    among = np.sort(among, axis=None)
    return np.searchsorted(among, keys, "right") - np.searchsorted(among, keys, "left")


def _hash(texts: Iterable[str]) -> np.ndarray:
    return np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, texts)), np.uint64)


def _as_dataset(pairs: Pairs) -> datasets.Dataset:
    if isinstance(pairs, datasets.Dataset):
        return _check_columns(pairs)
    if isinstance(pairs, datasets.DatasetDict):
        raise InputError(f"`pairs` has several splits ({', '.join(pairs)}): pass one, such as `dataset['train']`")
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        raise InputError(
            f"`pairs` is of type {type(pairs).__name__}: pass a dataset or a list of (source, target) tuples"
        )
    rows = [_as_pair(row, pair) for row, pair in enumerate(pairs)]
    columns = {name: [pair[place] for pair in rows] for place, name in enumerate(COLUMNS)}
    return datasets.Dataset.from_dict(columns, features=FEATURES)


def _check_columns(dataset: datasets.Dataset) -> datasets.Dataset:
    for name in COLUMNS:
        if name not in dataset.column_names:
            raise InputError(f"`pairs` has no column {name}, only {', '.join(dataset.column_names)}; rename one")
        if getattr(dataset.features[name], "dtype", None) not in ("string", "large_string"):
            raise InputError(f"the column {name} of `pairs` has {dataset.features[name]}, not texts")
    dataset = dataset.with_format(None).select_columns(COLUMNS)
    return dataset if dataset.features == FEATURES else dataset.cast(FEATURES)


def _as_pair(row: int, pair: Any) -> tuple[str, str]:
    try:
        source, target = (pair[name] for name in COLUMNS) if isinstance(pair, Mapping) else pair
    except (KeyError, TypeError, ValueError):
        raise InputError(f"`pairs`, row {row}: {pair!r:.100} is not a (source, target) pair") from None
    for name, text in zip(COLUMNS, (source, target), strict=True):
        if not isinstance(text, str):
            raise InputError(f"`pairs`, row {row}: the {name} is of type {type(text).__name__}, not a text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"`pairs`, row {row}: the {name} {text!r:.100} is not valid Unicode: {error}") from error
    return source, target


def _batches(dataset: datasets.Dataset) -> Iterator[tuple[list[str], list[str]]]:
    """Read sources and targets, many at a time, all of them with text."""
    for start in range(0, len(dataset), ROWS_AT_ONCE):
        columns = dataset[start : start + ROWS_AT_ONCE]
        for name in COLUMNS:
            for row, text in enumerate(columns[name], start):
                if not (text and text.strip()):
                    raise InputError(f"`pairs`, row {row}: `{name}` is blank; leave such rows out")
        yield columns["source"], columns["target"]
