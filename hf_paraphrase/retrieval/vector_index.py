from __future__ import annotations

import logging
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import faiss
import numpy as np
import xxhash
from tqdm.auto import tqdm

from ..common.errors import InputError
from ..common.progress import is_watched
from .encoders import SentenceEncoder

logger = logging.getLogger(__name__)

# Up to this many vectors, search is exact.
EXACT_UP_TO = 200_000
# An index of n vectors has 8√n lists, and is fitted to 40 vectors a list.
LISTS, TRAINING_VECTORS = 8, 320
# Lists and codes are made of so many numbers, those of longer vectors in which they differ most.
REDUCED = 128
# How to search, from fast to thorough: one list in so many is looked into, and so many times k are compared exactly.
EFFORTS = ((256, 12), (128, 16), (64, 32), (32, 64), (16, 128))
# The first is taken that finds this share of the neighbours of so many of the vectors themselves.
RECALL, TRIED = 0.95, 1000
# Neighbours that are searched for, however few are wanted.
LEAST = 5
# Of "ivf_pq": the most bytes of a code, lists for √n vectors, vectors a list that it is fitted to, lists looked into.
CODE_BYTES, COMPRESSED_LISTS, VECTORS_A_LIST, PROBED = 64, 4, 40, 64
# Of "ivf_pq_refine": lists looked into, from few to many, and the least that is compared exactly, in all and of each
# that is wanted.
REFINED_LISTS, COMPARED, COMPARED_EACH = (64, 128, 256, 512), 100, 20
ROWS_AT_ONCE = 100_000
# The most that faiss computes beforehand of codes and lists.
TABLE_BYTES = 2**31


def choose_index(count: int, dimension: int, on_gpu: bool) -> tuple[str, list[str]]:
    """Choose the kind of index for `count` vectors, of what FAISS has for GPUs if need be: what `faiss.index_factory`
    takes, and what `faiss.ParameterSpace` does, from fast to thorough, to choose from."""
    if count <= EXACT_UP_TO:
        return "Flat", [""]
    lists, size = LISTS * math.isqrt(count), min(dimension, REDUCED)
    width = next((width for width in (2, 3, 4, 5) if size % width == 0), None)
    if on_gpu or width is None:
        return f"IVF{lists},Flat", [f"nprobe={lists // 32}"]
    # In the lists nearest to a query, four bits for so many numbers choose what is compared exactly.
    description = f"IVF{lists},PQ{size // width}x4fs,RFlat"
    reduction = f"PCAR{size}," if size < dimension else ""
    return reduction + description, [f"nprobe={lists // part},k_factor_rf={times}" for part, times in EFFORTS]


def describe_compressed(count: int, dimension: int) -> tuple[str, list[str]]:
    """The index that "ivf_pq" means for a number of vectors: inverted lists of product-quantised codes, without the
    vectors.

    A vector takes a code of 64 bytes (or the most below by which its size divides) and 8 for its number, where its
    384 numbers would take 1,536. Of 1,000,000 clustered vectors (`clustered_vectors` of
    `scripts/benchmarks/retrieval.py`) in 4,000 lists, each takes 78.6 bytes, centres included; one core made the index
    in 189 s and answered 1,180 queries a second. The five found first were 0.32 of the five nearest, and the 50 found
    first held 0.91 of them (0.53 and 0.94 of 200,000 vectors): scores are estimates, so ask for more than is needed
    where the best must not be missed. Or use "ivf_pq_refine": it keeps the vectors in half precision too, in a file
    from which a search reads those that the codes find, to compare them exactly.

    By calculation, a hundred million vectors of 384 numbers take 7.2 GB of codes and numbers and 61 MB of centroids;
    the vectors, 154 GB, are in a temporary file while the index is built. It has 40,000 lists: a query is compared
    with all their centres, 15 million products, and with the codes of 64 lists, 160,000. To make it, 3.2 million
    vectors (4.9 GB) are compared with the centres ten times and then every vector once: 2e15 products.

    Args:
        count: Vectors.
        dimension: Their size.

    Returns:
        As `choose_index`.

    Source: product quantisation of Jégou et al. 2011.
    """
    code = max(size for size in range(1, CODE_BYTES + 1) if dimension % size == 0)
    lists = max(1, min(COMPRESSED_LISTS * math.isqrt(count), count // VECTORS_A_LIST))
    # np: no training of the order of codes, which helps only a search by Hamming distance and takes most of the time.
    return f"IVF{lists},PQ{code}np", [f"nprobe={min(lists, PROBED)}"]


class VectorIndex:
    """Search for the sentences whose vectors have the highest cosine with a sentence's, in a FAISS index.

    `checksum` is a hash of all its vectors, in order.

    Args:
        encoder: Makes the vectors.
        index: What `faiss.index_factory` takes; "auto" compares all vectors up to 200,000 and some beyond; "ivf_pq"
            keeps codes of 64 bytes in their place, and "ivf_pq_refine" the vectors too, in a file: see
            `describe_compressed`.
        search_parameters: What `faiss.ParameterSpace` takes, such as `nprobe=32`; None lets "auto" and "ivf_pq_refine"
            try out what finds 95% of the five nearest, and "ivf_pq" look into 64 lists.

    Attributes:
        exact: The vectors by which what is found is compared; None for any other index than "ivf_pq_refine".
    """

    def __init__(self, encoder: SentenceEncoder, index: str = "auto", search_parameters: str | None = None):
        self.encoder = encoder
        self.description = index
        self.search_parameters = search_parameters
        self.faiss_index: faiss.Index | None = None
        self.exact: ExactVectors | None = None
        self.checksum = ""
        self._searcher: faiss.Index | None = None

    def __len__(self) -> int:
        return 0 if self.faiss_index is None else self.faiss_index.ntotal

    @property
    def dimension(self) -> int | None:
        """The size of a vector; None until it exists."""
        return None if self.faiss_index is None else self.faiss_index.d

    @property
    def fingerprint(self) -> str:
        """A hash of everything that search results depend on, except the queries."""
        return f"{self.description} {self.search_parameters} {self.checksum}"

    def add(self, batches: Iterable[list[str] | list[tuple[str, str]]], count: int) -> None:
        """Add `count` sentences; the first call decides what "auto" is. A pair's vector is the mean of its sentences',
        so that a query's product with it is the mean of the two cosines."""
        if not count:
            return
        # Outside of memory, which the index itself will fill.
        with (
            tempfile.TemporaryFile() as file,
            tqdm(total=count, desc="encoding", unit="sentence", disable=not is_watched()) as progress,
        ):
            checksum = self.checksum
            for texts in batches:
                vectors = self._encode_added(texts)
                vectors.tofile(file)
                checksum = xxhash.xxh3_128_hexdigest(checksum.encode() + vectors.tobytes())
                progress.update(len(texts))
            file.flush()
            vectors = np.memmap(file, np.float32, "r", shape=(count, vectors.shape[1]))
            efforts = self._make(vectors) if self.faiss_index is None else []
            index = cast(faiss.Index, self.faiss_index)
            _read_mapped_lists(index)
            index.add(vectors)
            if self.exact is not None:
                self.exact.append(vectors)
            if efforts and self.search_parameters is None:
                self.search_parameters = efforts[0] if len(efforts) == 1 else self._choose_effort(vectors, efforts)
        self.checksum = checksum
        self._searcher = None

    def search(self, texts: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the `k` nearest sentences of each: cosines, the highest first, and their numbers, both of shape (texts,
        min(k, len(self))). An approximate index may find fewer; the rest have number -1."""
        k = min(k, len(self))
        if not (k and len(texts)):
            return np.zeros((len(texts), k), np.float32), np.zeros((len(texts), k), np.int64)
        if self._searcher is None:
            self._searcher = self._prepare()
        # The number of candidates grows with k: too few may miss the best.
        scores, rows = self._find(self._searcher, self._encode(list(texts)), max(k, min(LEAST, len(self))))
        return np.minimum(scores[:, :k], 1), rows[:, :k]

    def _find(self, index: faiss.Index, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self.exact is None:
            return index.search(queries, k)
        _, rows = index.search(queries, min(max(COMPARED, COMPARED_EACH * k), len(self)))
        return self.exact.rank(queries, rows, k)

    def _choose_effort(self, vectors: np.ndarray, efforts: Sequence[str]) -> str:
        """Choose the first search parameters, from fast to thorough, by which the index finds `RECALL` of the five
        nearest of some of its own vectors; the last if none does."""
        index, queries = self.faiss_index, np.ascontiguousarray(vectors[_draw_rows(len(vectors), TRIED)])
        k = LEAST + 1  # every vector is the nearest to itself
        if self.exact is None:
            exact = faiss.downcast_index(cast(faiss.IndexRefine, index).refine_index).search(queries, k)[0][:, -1:]
        else:
            exact = self.exact.kth_score(queries, k)[:, None]
        for effort in efforts:
            faiss.ParameterSpace().set_index_parameters(index, effort)
            # By cosines, for of equal sentences any will do.
            found = self._find(index, queries, k)[0] >= exact - 1e-6
            recall = np.mean(found.sum(axis=1) - 1) / LEAST
            if recall >= RECALL:
                return effort
        logger.warning("the index finds %.2f of the nearest sentences; with index='Flat' it would find all", recall)
        return effort

    def write(self, path: Path) -> None:
        """Write the FAISS index to a file."""
        _read_mapped_lists(self.faiss_index)
        faiss.write_index(self.faiss_index, str(path))

    @classmethod
    def read(cls, path: Path, checksum: str, *args: Any) -> VectorIndex:
        """Read the index of a file, with its checksum; the other arguments are those of the class.

        The lists of "ivf_pq" are memory-mapped: searches read what they need, and processes share it. What is no FAISS
        index raises InputError.
        """
        vectors = cls(*args)
        limit = faiss.get_deserialization_vector_byte_limit()
        # A length that is damaged asks for any amount of memory; nothing in a file is longer than the file, and beside
        # codes faiss makes room for a table.
        table = TABLE_BYTES if "PQ" in vectors.description else 0
        faiss.set_deserialization_vector_byte_limit(path.stat().st_size + table)
        try:
            vectors.faiss_index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        except (RuntimeError, MemoryError) as error:
            raise InputError(f"{path} is not a FAISS index: {error}") from error
        finally:
            faiss.set_deserialization_vector_byte_limit(limit)
        vectors.checksum = checksum
        return vectors

    def _encode(self, texts: list[str]) -> np.ndarray:
        vectors = self.encoder(texts)
        if self.dimension not in (None, vectors.shape[1]):
            raise InputError(
                f"the encoder makes vectors of {vectors.shape[1]} numbers, but the index has {self.dimension}: pass "
                "the encoder that the retriever was made with"
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _encode_added(self, texts: list[str] | list[tuple[str, str]]) -> np.ndarray:
        if isinstance(texts[0], str):
            return self._encode(texts)
        return np.mean([self._encode(list(side)) for side in zip(*texts, strict=True)], axis=0)

    def _make(self, vectors: np.ndarray) -> list[str]:
        """Make the index, without vectors; returns the search parameters from which one has to be chosen."""
        efforts: list[str] = []
        if self.description == "auto":
            self.description, efforts = choose_index(len(vectors), vectors.shape[1], on_gpu=faiss.get_num_gpus() > 0)
        elif self.description in ("ivf_pq", "ivf_pq_refine"):
            self.exact = ExactVectors(vectors.shape[1]) if self.description == "ivf_pq_refine" else None
            self.description, efforts = describe_compressed(*vectors.shape)
            if self.exact is not None:
                efforts = [f"nprobe={lists}" for lists in REFINED_LISTS]
        try:
            index = faiss.index_factory(vectors.shape[1], self.description, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            raise InputError(f"`index`: faiss knows no index {self.description!r}") from error
        try:
            index.train(vectors[_draw_rows(len(vectors), math.ceil(TRAINING_VECTORS * math.sqrt(len(vectors))))])
        except RuntimeError as error:
            raise InputError(
                f"`index`: {self.description!r} cannot be made of {len(vectors)} vectors: {error}"
            ) from error
        self.faiss_index = index
        return efforts

    def _prepare(self) -> faiss.Index:
        """Prepare searching, on GPUs if available and supported by FAISS."""
        if self.search_parameters:
            try:
                faiss.ParameterSpace().set_index_parameters(self.faiss_index, self.search_parameters)
            except RuntimeError as error:
                raise InputError(
                    f"`search_parameters`: {self.search_parameters!r} is nothing for an index {self.description!r}"
                ) from error
        if not faiss.get_num_gpus():
            return self.faiss_index
        try:
            return faiss.index_cpu_to_all_gpus(self.faiss_index)
        except RuntimeError as error:
            logger.warning("FAISS has no %s for GPUs, the CPU searches: %s", self.description, error)
            return self.faiss_index


def _read_mapped_lists(index: faiss.Index) -> None:
    """Map inverted lists from a file; they can neither grow nor be saved elsewhere."""
    inverted = faiss.try_extract_index_ivf(index)
    lists = None if inverted is None else faiss.downcast_InvertedLists(inverted.invlists)
    if isinstance(lists, faiss.OnDiskInvertedLists):
        read = faiss.ArrayInvertedLists(lists.nlist, lists.code_size)
        lists.copy_subset_to(read, faiss.InvertedLists.SUBSET_TYPE_ID_RANGE, 0, inverted.ntotal)
        inverted.replace_invlists(read, True)
        read.this.disown()


def _draw_rows(count: int, size: int) -> np.ndarray:
    """Sample at most `size` vectors, in order, since they may be on disk."""
    return np.sort(np.random.default_rng(0).choice(count, min(count, size), replace=False))


class ExactVectors:
    """Vectors in half precision in a file, by which what an index of codes has found is compared exactly: a search
    reads those that it is about.

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
