from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import xxhash
from tqdm.auto import tqdm

from ..errors import InputError
from .encoders import SentenceEncoder

__all__ = ["VectorIndex", "choose_index"]

logger = logging.getLogger(__name__)

# Up to so many vectors, every one is compared.
EXACT_UP_TO = 200_000
# An index of n vectors has about 4√n lists, and is fitted to 64 vectors a list.
LISTS, TRAINING_VECTORS = 4, 256
# Neighbours that are searched for, however few are wanted.
LEAST = 5


def choose_index(count: int, dimension: int, on_gpu: bool) -> tuple[str, str]:
    """Choose how to search among so many vectors.

    Args:
        count: Vectors.
        dimension: Their size.
        on_gpu: Only use what FAISS has for GPUs.

    Returns:
        What `faiss.index_factory` and `faiss.ParameterSpace` take.
    """
    if count <= EXACT_UP_TO:
        return "Flat", ""
    lists = 2 ** round(math.log2(LISTS * math.sqrt(count)))
    width = next((width for width in (2, 3, 4, 5) if dimension % width == 0), None)
    if on_gpu or width is None:
        return f"IVF{lists},Flat", f"nprobe={lists // 32}"
    # In the lists nearest to a query, four bits for so many numbers choose 32 times k to be compared exactly.
    return f"IVF{lists},PQ{dimension // width}x4fs,RFlat", f"nprobe={lists // 64},k_factor_rf=32"


class VectorIndex:
    """Search for the sentences whose vectors have the highest cosine with a sentence's, in a FAISS index.

    `checksum` is a hash of all its vectors, in their order.

    Args:
        encoder: Makes the vectors.
        index: What `faiss.index_factory` takes; "auto" compares all vectors up to 200,000 and some beyond.
        search_parameters: What `faiss.ParameterSpace` takes, such as `nprobe=32`; None for those that go with "auto".
    """

    def __init__(self, encoder: SentenceEncoder, index: str = "auto", search_parameters: str | None = None):
        self.encoder = encoder
        self.description = index
        self.search_parameters = search_parameters
        self.faiss_index: faiss.Index | None = None
        self.checksum = ""
        self._searcher: faiss.Index | None = None

    def __len__(self) -> int:
        return 0 if self.faiss_index is None else self.faiss_index.ntotal

    @property
    def dimension(self) -> int | None:
        """The size of a vector; None as long as there is none."""
        return None if self.faiss_index is None else self.faiss_index.d

    @property
    def fingerprint(self) -> str:
        """Names all that search results depend on but the queries."""
        return f"{self.description} {self.search_parameters} {self.checksum}"

    def add(self, batches: Iterable[list[str]], count: int) -> None:
        """Add sentences, which are found from now on; the first call decides what "auto" is.

        Args:
            batches: The sentences.
            count: How many they are.
        """
        if not count:
            return
        # Outside of memory, which the index itself will fill.
        with (
            tempfile.TemporaryFile() as file,
            tqdm(total=count, desc="encoding", unit="sentence", disable=None) as progress,
        ):
            checksum = self.checksum
            for texts in batches:
                vectors = self._encode(texts)
                vectors.tofile(file)
                checksum = xxhash.xxh3_128_hexdigest(checksum.encode() + vectors.tobytes())
                progress.update(len(texts))
            file.flush()
            vectors = np.memmap(file, np.float32, "r", shape=(count, vectors.shape[1]))
            if self.faiss_index is None:
                self.faiss_index = self._make(vectors)
            self.faiss_index.add(vectors)
        self.checksum = checksum
        self._searcher = None

    def search(self, texts: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the `k` nearest sentences of each.

        Returns:
            Cosines, the highest first, and the numbers of the sentences, both of shape (texts, min(k, len(self))). An
            index that does not compare all may find fewer; the numbers of the others are -1.
        """
        k = min(k, len(self))
        if not (k and len(texts)):
            return np.zeros((len(texts), k), np.float32), np.zeros((len(texts), k), np.int64)
        if self._searcher is None:
            self._searcher = self._prepare()
        # Candidates are chosen in proportion to what is wanted: of too few, the best may be missed.
        scores, rows = self._searcher.search(self._encode(list(texts)), max(k, min(LEAST, len(self))))
        return np.minimum(scores[:, :k], 1), rows[:, :k]

    def write(self, path: Path) -> None:
        """Write the FAISS index to a file."""
        faiss.write_index(self.faiss_index, str(path))

    @classmethod
    def read(cls, path: Path, checksum: str, *args: Any) -> VectorIndex:
        """Read the index of a file, with its checksum; the other arguments are those of the class.

        Raises:
            InputError: It is no FAISS index.
        """
        vectors = cls(*args)
        limit = faiss.get_deserialization_vector_byte_limit()
        # A length that is damaged asks for any amount of memory; nothing in a file is longer than the file.
        faiss.set_deserialization_vector_byte_limit(path.stat().st_size)
        try:
            vectors.faiss_index = faiss.read_index(str(path))
        except (RuntimeError, MemoryError) as error:
            raise InputError(f"{path} is no FAISS index: {error}") from error
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

    def _make(self, vectors: np.ndarray) -> faiss.Index:
        if self.description == "auto":
            self.description, parameters = choose_index(*vectors.shape, on_gpu=faiss.get_num_gpus() > 0)
            self.search_parameters = parameters if self.search_parameters is None else self.search_parameters
        try:
            index = faiss.index_factory(vectors.shape[1], self.description, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            raise InputError(f"`index`: faiss knows no index {self.description!r}") from error
        try:
            index.train(vectors[_training_rows(len(vectors))])
        except RuntimeError as error:
            raise InputError(
                f"`index`: {self.description!r} cannot be made of {len(vectors)} vectors: {error}"
            ) from error
        return index

    def _prepare(self) -> faiss.Index:
        """Set the search up, on the GPUs where there are any and FAISS was built for them."""
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


def _training_rows(count: int) -> np.ndarray:
    """Draw vectors to fit an index to, in their order, since they may be on disk."""
    size = min(count, math.ceil(TRAINING_VECTORS * math.sqrt(count)))
    return np.sort(np.random.default_rng(0).choice(count, size, replace=False))
