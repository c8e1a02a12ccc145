from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from filelock import FileLock, Timeout

from ..common.fields import option
from .builder import CorpusConfig, ParaphraseBuilder
from .corpus_reader import CorpusReader
from .sampling import held_out_sizes

# A source and some of its targets.
Group = tuple[str, list[str]]
SCHEMA = pa.schema({"key": pa.uint64(), "source": pa.string(), "target": pa.string()})
# Buckets are files that are open at once, and the share of the pairs that is in memory at once.
BUCKET_BITS = 7
ROWS_AT_ONCE = 100_000


@dataclass
class SampledPairsConfig(CorpusConfig):
    """How very many pairs become splits."""

    seed: int = option("Decides which pairs are in which split, and their order.", 42)
    train_size: int | None = option("Pairs to train on at most; None takes all.", None, least=0)
    validation_size: int = option("Sources to validate on, each with one of its targets.", 1000, least=0)
    test_size: int = option("Sources to test on.", 20_000, least=0)
    max_references: int = option("References of a test source at most.", 5, least=1)
    max_held_out: float = option(
        "The share of the sources that is kept out of train, and that the others are drawn from.", 0.1, least=0, most=1
    )


class SampledPairsBuilder(ParaphraseBuilder):
    """A corpus of more paraphrase pairs than fit into memory, sampled without replacement.

    A hash decides whether a source is held out, so all its pairs are. The pairs that are not are shuffled on disk, by
    hash, so that the rows and their order depend on the seed and the pairs alone, and a pair comes once.
    """

    # Whether a target's sources are references for it too.
    symmetric: ClassVar[bool] = False

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield sources and their targets, many at a time."""
        raise NotImplementedError

    def parts(self) -> dict[str, dict[str, Any]]:
        train, held_out = self._store()
        config = self.config
        validation_size, test_size = held_out_sizes(
            held_out.count_keys(), config.validation_size, config.test_size, most=1
        )
        found = islice(held_out.groups(), validation_size + test_size)
        groups: list[Group] = [(source, targets[: config.max_references]) for source, targets in found]
        return {
            "train": {"split": "train", "store": train, "held_out": tuple(source for source, _ in groups)},
            "validation": {"split": "validation", "groups": tuple(groups[:validation_size])},
            "test": {"split": "test", "groups": tuple(groups[validation_size:])},
        }

    def _store(self) -> tuple[PairStore, PairStore]:
        """Read the corpus once: training pairs by their own hash, the others by their source's."""
        folder = self.scratch_folder()
        train, held_out = PairStore(folder / "train"), PairStore(folder / "held_out")
        for store in (train, held_out):
            store.folder.mkdir()
        seed = self.config.seed
        # A float, since all of the hashes, where the share is 1, is one more than 64 bits hold.
        limit = self.config.max_held_out * 2.0**64
        with self.reader() as reader:
            for sources, targets in self.read_pairs(reader):
                source_keys, target_keys = hash_texts(sources, seed), hash_texts(targets, seed)
                # A source in capitals is the same to most models and metrics, so it is held out with the other.
                folded = hash_texts(pc.utf8_lower(sources), seed)
                kept = folded < limit
                held_out.add(*_where(kept, folded, sources, targets))
                if self.symmetric:
                    folded = hash_texts(pc.utf8_lower(targets), seed)
                    held_out.add(*_where(folded < limit, folded, targets, sources))
                # An odd multiplier makes the other direction another pair and loses nothing of the source's hash.
                pair_keys = source_keys * np.uint64(0x9E3779B97F4A7C15) + target_keys
                train.add(*_where(~kept, pair_keys, sources, targets))
        train.close()
        held_out.close()
        return train, held_out

    def scratch_folder(self) -> Path:
        """A scratch folder beside the cache, removed with the builder; those of builds that were killed go."""
        root = Path(self._cache_dir_root)
        root.mkdir(parents=True, exist_ok=True)
        for folder in root.glob("pairs-*"):
            lock = _lock_of(folder)
            with suppress(Timeout):
                lock.acquire(blocking=False)
                _remove(folder, lock, os.getpid())
        folder = root / f"pairs-{uuid4().hex}"
        lock = _lock_of(folder)
        lock.acquire()
        folder.mkdir()
        weakref.finalize(self, _remove, folder, lock, os.getpid())
        return folder

    def _generate_tables(
        self, split: str, store: PairStore | None = None, held_out: tuple[str, ...] = (), **part: Any
    ) -> Iterator[tuple[int, pa.Table]]:
        if store is None:
            yield from super()._generate_tables(split=split, **part)
            return
        schema = self.info.features.arrow_schema
        left = self.config.train_size
        excluded = pc.utf8_lower(pa.array(held_out, pa.string()))
        for number, table in enumerate(store.tables()):
            keys = table["key"].to_numpy()
            first = np.concatenate(([True], keys[1:] != keys[:-1])) if len(keys) else np.array([], bool)
            table = table.filter(pa.array(first))
            # A test source must not be a training target either: a pair may occur in both directions.
            table = table.filter(pc.invert(pc.is_in(pc.utf8_lower(table["target"]), excluded)))[:left]
            references = pa.nulls(len(table), schema.field("references").type)
            yield number, pa.table([table["source"], table["target"], references], schema=schema)
            if left is not None:
                left -= len(table)
                if not left:
                    break

    def generate_rows(self, split: str, groups: tuple[Group, ...]) -> Iterator[dict[str, Any]]:
        for source, targets in groups:
            row = {"references": targets} if split == "test" else {"target": targets[0]}
            yield {"source": source, **row}


def _where(
    mask: np.ndarray, keys: np.ndarray, sources: pa.Array, targets: pa.Array
) -> tuple[np.ndarray, pa.Array, pa.Array]:
    kept = pa.array(mask)
    return keys[mask], sources.filter(kept), targets.filter(kept)


def _lock_of(folder: Path) -> FileLock:
    return FileLock(folder.with_name(f".{folder.name}.lock"))


def _remove(folder: Path, lock: FileLock, process: int) -> None:
    # A forked process has a copy of the builder, but not the right to end its folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def hash_texts(texts: pa.Array, seed: int) -> np.ndarray:
    """Hash texts to unsigned 64-bit integers `(texts,)`, the same on every machine; another seed gives other
    hashes."""
    encoded = texts.cast(pa.binary()).to_pylist()
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded, repeat(seed % 2**64)), np.uint64, len(encoded))


class PairStore:
    """Text pairs on disk, in an empty folder, more than fit into memory, read back in the order of their keys.

    The first bits of a pair's key say which file it is put into; files are sorted one at a time, when they are read. A
    pair that comes again is stored once, or a few times, and read once: memory follows the distinct ones.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0

    def add(self, keys: np.ndarray, sources: pa.Array, targets: pa.Array) -> None:
        """Store pairs, with keys of shape (pairs,)."""
        self._waiting.append(pa.record_batch([pa.array(keys), sources, targets], schema=SCHEMA))
        self._waiting_rows += len(keys)
        if self._waiting_rows >= ROWS_AT_ONCE:
            self._scatter()

    def close(self) -> None:
        """Finish writing; afterwards the pairs can be read."""
        self._scatter()
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def tables(self) -> Iterator[pa.Table]:
        """Read all pairs in the order of their keys, in tables of any size with `key`, `source` and `target`."""
        for path in sorted(self.folder.glob("*.arrow")):
            table = _read_distinct(path)
            yield table.take(np.argsort(table["key"].to_numpy(), kind="stable"))

    def groups(self) -> Iterator[tuple[str, list[str]]]:
        """Read every source with its distinct targets; the keys must be those of the sources.

        Where they are those of the sources in lower case, spellings with other capitals are one source.
        """
        for table in self.tables():
            rows = zip(*(table[name].to_pylist() for name in SCHEMA.names), strict=True)
            for _, same_key in groupby(rows, key=itemgetter(0)):
                ordered = sorted((source.lower(), source, target) for _, source, target in same_key)
                for _, pairs in groupby(ordered, key=itemgetter(0)):
                    _, sources, targets = zip(*pairs, strict=True)
                    yield sources[0], list(dict.fromkeys(targets))

    def count_keys(self) -> int:
        """The number of different keys."""
        return sum(len(np.unique(table["key"].to_numpy())) for table in self.tables())

    def _scatter(self) -> None:
        if not self._waiting_rows:
            return
        table = _distinct(pa.Table.from_batches(self._waiting, SCHEMA))
        self._waiting, self._waiting_rows = [], 0
        buckets = (table["key"].to_numpy() >> np.uint64(64 - BUCKET_BITS)).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        table = table.take(order)
        numbers, starts = np.unique(buckets[order], return_index=True)
        for number, start, stop in zip(numbers, starts, [*starts[1:], len(order)], strict=True):
            self._writer(int(number)).write_table(table.slice(start, stop - start))

    def _writer(self, bucket: int) -> pa.RecordBatchStreamWriter:
        if bucket not in self._writers:
            self._writers[bucket] = pa.ipc.new_stream(str(self.folder / f"{bucket:03d}.arrow"), SCHEMA)
        return self._writers[bucket]


def _distinct(table: pa.Table) -> pa.Table:
    """Every row once, in the order in which it first came."""
    return table.group_by(SCHEMA.names, use_threads=False).aggregate([]).combine_chunks()


def _read_distinct(path: Path) -> pa.Table:
    """The distinct rows of a file; about twice that many are in memory at most."""
    table, waiting = SCHEMA.empty_table(), 0
    with pa.memory_map(str(path)) as file:
        for batch in pa.ipc.open_stream(file):
            table = pa.concat_tables([table, pa.Table.from_batches([batch])])
            waiting += len(batch)
            if waiting >= max(ROWS_AT_ONCE, len(table) - waiting):
                table, waiting = _distinct(table), 0
        return _distinct(table)


class TextIndex:
    """Finds the text that belongs to another one; only hashes are in memory, 8 bytes a text.

    The store has the texts to look up as sources, with their hashes of seed 0 as keys, and their meanings as targets.
    Of several targets the first in alphabetical order counts. The path is a file to write.
    """

    def __init__(self, store: PairStore, path: Path):
        keys = [np.array([], np.uint64)]
        with pa.ipc.new_file(str(path), SCHEMA) as writer:
            for table in store.tables():
                table = table.sort_by([("key", "ascending"), ("target", "ascending")])
                unique, first = np.unique(table["key"].to_numpy(), return_index=True)
                keys.append(unique)
                writer.write_table(table.take(first))
        self._keys = np.concatenate(keys)
        self._file = pa.memory_map(str(path))
        self._texts = pa.ipc.open_file(self._file).read_all()["target"]

    def find(self, texts: pa.Array) -> pa.Array:
        """The meaning of each text; null if unknown."""
        keys = hash_texts(texts, 0)
        places = np.searchsorted(self._keys, keys)
        known = places < len(self._keys)
        known[known] = self._keys[places[known]] == keys[known]
        found = self._texts.take(pa.array(places, mask=~known))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
