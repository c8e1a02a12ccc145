from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from ..common.fields import option
from .builder import CorpusConfig, ParaphraseBuilder
from .corpus_reader import CorpusReader
from .pair_store import PairStore, hash_texts
from .sampling import held_out_sizes

# A source and some of its targets.
Group = tuple[str, list[str]]


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
        groups: list[Group] = []
        for source, targets in held_out.groups():
            if len(groups) == validation_size + test_size:
                break
            groups.append((source, targets[: config.max_references]))
        sources = [source for source, _ in groups]
        return {
            "train": {"split": "train", "store": train, "held_out": tuple(sources)},
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
                kept = source_keys < limit
                held_out.add(*_where(kept, source_keys, sources, targets))
                if self.symmetric:
                    held_out.add(*_where(target_keys < limit, target_keys, targets, sources))
                train.add(*_where(~kept, _pair_keys(source_keys, target_keys), sources, targets))
        train.close()
        held_out.close()
        return train, held_out

    def scratch_folder(self) -> Path:
        """A scratch folder beside the cache, removed with the builder."""
        root = Path(self._cache_dir_root)
        root.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(root)
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
        excluded = pa.array(held_out, pa.string())
        for number, table in enumerate(store.tables()):
            keys = table["key"].to_numpy()
            first = np.concatenate(([True], keys[1:] != keys[:-1])) if len(keys) else np.array([], bool)
            table = table.filter(pa.array(first))
            # A test source must not be a training target either: a pair may occur in both directions.
            table = table.filter(pc.invert(pc.is_in(table["target"], excluded)))[:left]
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


def _pair_keys(source_keys: np.ndarray, target_keys: np.ndarray) -> np.ndarray:
    # An odd multiplier makes the other direction another pair and loses nothing of the source's hash.
    return source_keys * np.uint64(0x9E3779B97F4A7C15) + target_keys


def _lock_of(folder: Path) -> FileLock:
    """A scratch folder that is removed with its builder, however that ends."""
    return FileLock(folder.with_name(f".{folder.name}.lock"))


def _remove_leftovers(root: Path) -> None:
    """Remove the scratch folders of builds that were killed."""
    for folder in root.glob("pairs-*"):
        lock = _lock_of(folder)
        with suppress(Timeout):
            lock.acquire(blocking=False)
            _remove(folder, lock, os.getpid())


def _remove(folder: Path, lock: FileLock, process: int) -> None:
    # A forked process has a copy of the builder, but not the right to end its folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)
