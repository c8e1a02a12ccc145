from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import datasets
import numpy as np
from huggingface_hub import CommitInfo, HfApi, snapshot_download

from ..errors import InputError
from .encoders import DEFAULT_ENCODER, SentenceEncoder, load_encoder
from .jaccard import JaccardIndex
from .neighbors import add_neighbors
from .pairs import PairMemory, Pairs, pair_keys
from .storage import ENCODER_FOLDER, FILES, load_retriever, save_retriever
from .vector_index import VectorIndex

__all__ = ["ParaphraseRetriever", "RetrievedPair"]


class RetrievedPair(NamedTuple):
    """A sentence pair that was found.

    Args:
        source: Its first sentence, the one like the text that was asked for.
        target: Its second sentence.
        score: How like, at most 1: the cosine of the sentences' vectors, or the Jaccard similarity of their tokens.
        row: Its number in the memory.
    """

    source: str
    target: str
    score: float
    row: int


class ParaphraseRetriever:
    """A memory of sentence pairs that finds those whose source is most like a text.

    ```python
    retriever = ParaphraseRetriever.from_pairs(load_dataset("quora", "clean", data_dir=…)["train"], encoder="jaccard")
    retriever.retrieve(["How do I learn faster?"], k=3)
    ```

    Args:
        pairs: The pairs.
        index: Searches their sources, which it has all in their order.

    Source: the retriever of Kazemnejad et al. 2020, section 3.1.
    """

    def __init__(self, pairs: PairMemory, index: JaccardIndex | VectorIndex):
        self.pairs = pairs
        self.index = index

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        encoder: str | os.PathLike | SentenceEncoder | Callable[[list[str]], Any] = DEFAULT_ENCODER,
        index: str = "auto",
        *,
        search_parameters: str | None = None,
        trust_remote_code: bool = False,
        **encoder_kwargs: Any,
    ) -> ParaphraseRetriever:
        """Make a retriever of pairs; of pairs that stand there twice, it keeps the first.

        Args:
            pairs: A dataset with the columns `source` and `target`, or (source, target) tuples.
            encoder: What makes vectors of sentences: the folder or Hub repository of a model of sentence-transformers,
                or of any that `AutoModel` loads, whose states are averaged; or a function from a list of texts to
                an array. "jaccard" compares sets of tokens instead and needs no model.
            index: "auto" compares all vectors up to 200,000 pairs, and those of the nearest groups beyond; or
                anything that `faiss.index_factory` takes.
            search_parameters: What `faiss.ParameterSpace` takes, such as `nprobe=32`.
            trust_remote_code: Let the encoder's repository run its own code.
            encoder_kwargs: `device` and `batch_size` of the encoder.

        Raises:
            InputError: Something is no pair, or an argument is wrong; the message says which.
        """
        memory = PairMemory(pairs)
        if encoder == "jaccard":
            retriever = cls(memory, JaccardIndex())
        else:
            encoder = load_encoder(encoder, trust_remote_code=trust_remote_code, **encoder_kwargs)
            retriever = cls(memory, VectorIndex(encoder, index, search_parameters))
        retriever.index.add(memory.sources(), len(memory))
        return retriever

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def fingerprint(self) -> str:
        """Names all that results depend on but the texts asked for."""
        return f"{self.pairs.checksum} {self.index.fingerprint}"

    def add(self, pairs: Pairs) -> None:
        """Add pairs, which are found from now on.

        Args:
            pairs: As those of `from_pairs`; what the memory has already is left out.

        Raises:
            InputError: Something is no pair; then none was added.
        """
        memory = copy(self.pairs)
        added = memory.add(pairs)
        self.index.add(memory.sources(len(self)), added)
        # Now that the encoder has not failed.
        self.pairs = memory

    def retrieve(
        self, texts: Sequence[str], k: int = 1, exclude: Sequence[str] | None = None
    ) -> list[list[RetrievedPair]]:
        """Find the `k` pairs whose source is most like each text.

        Args:
            texts: Texts, one or thousands.
            k: Pairs for each; all there are, where they are fewer.
            exclude: A target for each text: a pair of these two sentences, in either order and in upper or lower
                case, is not returned. In training that is the example itself.

        Returns:
            For each text its pairs, the best first.

        Raises:
            InputError: An argument is wrong; the message says which.
        """
        scores, rows = self.search(texts, k, exclude)
        found = rows >= 0
        pairs = iter(self.pairs[rows[found].tolist()])
        return [
            [RetrievedPair(*next(pairs), float(score), int(row)) for score, row in zip(*hits, strict=True) if row >= 0]
            for hits in zip(scores, rows, strict=True)
        ]

    def search(
        self, texts: Sequence[str], k: int, exclude: Sequence[str] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find pairs as `retrieve` does, but return their scores and numbers.

        Returns:
            Scores and numbers of the pairs in the memory, both of shape (texts, min(k, len(self))). Where fewer were
            found, the numbers of the others are -1.
        """
        texts = _check_texts("texts", texts)
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"`k` must be at least 1, not {k!r}")
        if exclude is None:
            return self._search(texts, k)
        exclude = _check_texts("exclude", exclude)
        if len(exclude) != len(texts):
            raise InputError(f"`exclude` has {len(exclude)} targets for {len(texts)} texts")
        excluded = pair_keys(texts, exclude)
        scores, rows = self._search(texts, k + self.pairs.count(excluded))
        # -1, the number of what was not found, is that of the last pair here, which changes nothing.
        kept = (self.pairs.keys[rows] != excluded[:, None]) & (rows >= 0)
        order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
        kept, scores, rows = (np.take_along_axis(array, order, axis=1) for array in (kept, scores, rows))
        return np.where(kept, scores, 0), np.where(kept, rows, -1)

    def _search(self, texts: list[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Search once for a text that comes several times, as the sources of a corpus often do."""
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        scores, rows = self.index.search(list(places), k)
        order = [places[text] for text in texts]
        return scores[order], rows[order]

    def neighbors(self, dataset: datasets.Dataset, k: int) -> datasets.Dataset:
        """Find the pairs nearest to every row of a dataset, but never the row itself or a pair of the same sentences.

        The rows found are kept in the cache of datasets, as `Dataset.map` does it, part by part: an interrupted
        search goes on where it was.

        Args:
            dataset: Has the column `source`, and `target`, if there are pairs not to be found.
            k: Pairs for each row.

        Returns:
            The dataset with the columns `retrieved_sources`, `retrieved_targets` and `retrieved_scores`, lists of
            `k`, the best first; shorter only where the memory has fewer.
        """
        return add_neighbors(self, dataset, k)

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Write `pairs.parquet`, `index.faiss` (where there are vectors) and `retriever_config.json` to a folder.

        An encoder that was a folder, and not a Hub repository, is written to the subfolder `encoder`.

        Args:
            save_directory: A folder that is new, or holds a retriever, which is replaced.

        Raises:
            FileExistsError: The folder holds something else.
        """
        save_retriever(Path(save_directory), self.pairs, self.index)

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike,
        encoder: str | os.PathLike | SentenceEncoder | Callable[[list[str]], Any] | None = None,
        *,
        subfolder: str = "",
        revision: str | None = None,
        token: str | bool | None = None,
        trust_remote_code: bool = False,
        **encoder_kwargs: Any,
    ) -> ParaphraseRetriever:
        """Read a retriever that was saved.

        Args:
            path: A folder or a Hub repository.
            encoder: The encoder that it was made with, if that was a function or is somewhere else now.
            subfolder: Where in it the retriever is; that of a model's checkpoint is in `retriever`.
            revision: A branch, tag or commit of the repository.
            token: For a repository that is not public.
            trust_remote_code: Let the encoder's repository run its own code.
            encoder_kwargs: `device` and `batch_size` of the encoder.

        Raises:
            FileNotFoundError: There is no retriever.
            InputError: The files are damaged, or do not go together or with the encoder; the message says what.
        """
        folder = Path(path)
        if not folder.is_dir():
            folder = _download(os.fspath(path), subfolder, revision, token)
        options = {"trust_remote_code": trust_remote_code, **encoder_kwargs}
        return cls(*load_retriever(folder / subfolder, encoder, **options))

    def push_to_hub(
        self,
        repo_id: str,
        *,
        subfolder: str = "",
        commit_message: str = "Add retriever",
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
    ) -> CommitInfo:
        """Put the retriever's files into a repository on the Hub, in one commit; it is made if there is none.

        Args:
            repo_id: The repository, a model's.
            subfolder: Where to put them, such as `retriever`; by default beside everything else.
            commit_message: Says what the commit does.
            private: Whether a new repository is private.
            token: Who you are; None for that of `hf auth login`.
            revision: A branch.
        """
        api = HfApi(token=token)
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                path_in_repo=subfolder,
                commit_message=commit_message,
                revision=revision,
            )


def _download(repo_id: str, subfolder: str, revision: str | None, token: str | bool | None) -> Path:
    patterns = [f"{subfolder}/{name}" if subfolder else name for name in (*FILES, f"{ENCODER_FOLDER}/*")]
    try:
        return Path(snapshot_download(repo_id, allow_patterns=patterns, revision=revision, token=token))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"{repo_id} is neither a folder nor a Hub repository within reach: {error}") from error


def _check_texts(name: str, texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError(f"`{name}` is one text: pass a list of texts")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"`{name}`, number {place}: this is of type {type(text).__name__}, not a text")
    return texts
