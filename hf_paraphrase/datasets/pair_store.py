from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, repeat
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

SCHEMA = pa.schema({"key": pa.uint64(), "source": pa.string(), "target": pa.string()})
# Buckets are files that are open at once, and the share of the pairs that is in memory at once.
BUCKET_BITS = 7
ROWS_AT_ONCE = 100_000


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
        """Read every source with its distinct targets; the keys must be those of the sources."""
        for table in self.tables():
            rows = zip(*(table[name].to_pylist() for name in SCHEMA.names), strict=True)
            for _, same_key in groupby(rows, key=itemgetter(0)):
                for source, pairs in groupby(sorted(same_key), key=itemgetter(1)):
                    yield source, list(dict.fromkeys(target for _, _, target in pairs))

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
