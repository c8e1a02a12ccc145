from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from itertools import chain
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import datasets
import numpy as np
from huggingface_hub import CommitInfo, HfApi, snapshot_download

from ..common.checks import whole_number
from ..common.errors import InputError
from ..common.files import check_links
from ..common.hub_access import describe_absence, use_cache_without_network
from .encoders import DEFAULT_ENCODER, EncoderLike, load_encoder
from .jaccard import JaccardIndex
from .pairs import COMPARED, PairMemory, Pairs, count_each, map_once, pair_keys, sentence_keys
from .storage import ENCODER_FOLDER, FILES, load_pairs_and_index, save_pairs_and_index
from .vector_index import VectorIndex

FEATURES = datasets.Features(
    {
        "retrieved_sources": datasets.List(datasets.Value("string")),
        "retrieved_targets": datasets.List(datasets.Value("string")),
        "retrieved_scores": datasets.List(datasets.Value("float32")),
    }
)
# Rows that are searched for at once, and that a file of the cache has.
ROWS_AT_ONCE, ROWS_A_FILE = 1000, 20_000


class RetrievedPair(NamedTuple):
    """A sentence pair that was found.

    Args:
        source: Its first sentence, the one like the text that was asked for.
        target: Its second sentence.
        score: How like, at most 1: the cosine of the sentences' vectors, or the Jaccard similarity of their tokens; of
            the whole pair, where it is compared.
        row: Its number in the memory.
    """

    source: str
    target: str
    score: float
    row: int


class Exclusion(NamedTuple):
    """Which pairs each text must not get."""

    memory: np.ndarray  # keys that the pairs have, shape (keys of a pair, pairs)
    keys: np.ndarray  # those that a pair for the text must not have, shape (texts, keys)

    def count(self) -> np.ndarray:
        """How many pairs that are for each text, at most, shape (texts,)."""
        return count_each(self.keys, self.memory).sum(axis=1)

    def applies(self, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Which of the pairs `rows`, shape (places, pairs), of the texts at `places` are among them."""
        unwanted = np.zeros(rows.shape, bool)
        for own in self.memory:
            for keys in self.keys[places].T:
                unwanted |= own[rows] == keys[:, None]
        return unwanted


class ParaphraseRetriever:
    """A memory of sentence pairs that finds those whose source is most like a text.

    ```python
    retriever = ParaphraseRetriever.from_pairs(load_dataset("quora", "clean", data_dir=…)["train"], encoder="jaccard")
    retriever.retrieve(["How do I learn faster?"], k=3)
    ```

    Args:
        pairs: The pairs.
        index: Searches their sources, or both sentences, which it has all in their order.
        compare: Which of the two: "source" or "pair".

    Source: the retriever of Kazemnejad et al. 2020, section 3.1.
    """

    def __init__(self, pairs: PairMemory, index: JaccardIndex | VectorIndex, compare: str = "source"):
        self.pairs = pairs
        self.index = index
        self.compare = compare

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        encoder: EncoderLike = DEFAULT_ENCODER,
        index: str = "auto",
        *,
        compare: str = "source",
        search_parameters: str | None = None,
        trust_remote_code: bool = False,
        **encoder_kwargs: Any,
    ) -> ParaphraseRetriever:
        """Make a retriever from pairs; of duplicates, it keeps the first.

        Args:
            pairs: A dataset with the columns `source` and `target`, or (source, target) tuples.
            encoder: What makes vectors of sentences: the folder or Hub repository of a model of sentence-transformers,
                or of any that `AutoModel` loads, whose states are averaged; or a function from a list of texts to
                an array. "jaccard" compares sets of tokens instead and needs no model.
            index: "auto" compares all vectors up to 200,000 pairs, and those of the nearest groups beyond; "ivf_pq"
                keeps codes of about 64 bytes instead of vectors, for tens of millions of pairs: scores are
                estimates, and some neighbours are missed; "ivf_pq_refine" adds the vectors in half precision, which
                stay on disk, and compares the best exactly; or anything that `faiss.index_factory` takes.
            compare: "source" finds the pairs whose source is like a text, as the paper does; "pair" those of which
                both sentences are: by the mean of the two cosines, or by their tokens as one set.
            search_parameters: What `faiss.ParameterSpace` takes, such as `nprobe=32`.
            trust_remote_code: Let the encoder's repository run its own code.
            encoder_kwargs: `device` and `batch_size` of the encoder.

        Raises:
            InputError: Something is not a pair, or an argument is wrong; the message says which.
        """
        if compare not in COMPARED:
            raise InputError(f"`compare` must be {' or '.join(COMPARED)}, not {compare!r}")
        memory = PairMemory(pairs)
        if encoder == "jaccard":
            searched: JaccardIndex | VectorIndex = JaccardIndex()
        else:
            encoder = load_encoder(encoder, trust_remote_code=trust_remote_code, **encoder_kwargs)
            searched = VectorIndex(encoder, index, search_parameters)
        searched.add(memory.read_compared(compare), len(memory))
        return cls(memory, searched, compare)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def fingerprint(self) -> str:
        """Names all that results depend on but the texts asked for."""
        return f"{self.pairs.checksum} {self.index.fingerprint} {self.compare}"

    def add(self, pairs: Pairs) -> None:
        """Add pairs, which are found from now on.

        Args:
            pairs: As in `from_pairs`; existing pairs are skipped.

        Raises:
            InputError: Something is not a pair; then none was added.
        """
        memory = copy(self.pairs)
        added = memory.add(pairs)
        self.index.add(memory.read_compared(self.compare, len(self)), added)
        # Now that the encoder has not failed.
        self.pairs = memory

    def retrieve(
        self,
        texts: Sequence[str],
        k: int = 1,
        exclude: Sequence[str] | None = None,
        exclude_sentences: Sequence[Sequence[str]] | None = None,
    ) -> list[list[RetrievedPair]]:
        """Find the `k` pairs whose source is most like each text.

        Sentences are equal here where they differ in upper and lower case or in white space alone.

        Args:
            texts: Texts, one or thousands.
            k: Number of pairs for each; all pairs if there are fewer.
            exclude: A target for each text: a pair of these two sentences, in either order, is not returned. In
                training that is the example itself.
            exclude_sentences: Sentences for each text: a pair with one of them, on either side, is not returned. In
                evaluation these are the text itself and everything that reveals its answer.

        Returns:
            For each text its pairs, the best first.

        Raises:
            InputError: An argument is wrong; the message says which.
        """
        scores, rows = self.search(texts, k, exclude, exclude_sentences)
        found = rows >= 0
        pairs = iter(self.pairs[rows[found].tolist()])
        return [
            [RetrievedPair(*next(pairs), float(score), int(row)) for score, row in zip(*hits, strict=True) if row >= 0]
            for hits in zip(scores, rows, strict=True)
        ]

    def search(
        self,
        texts: Sequence[str],
        k: int,
        exclude: Sequence[str] | None = None,
        exclude_sentences: Sequence[Sequence[str]] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find pairs as `retrieve` does, but return their scores and their numbers in the memory, both of shape
        (texts, min(k, len(self))); missing results have number -1."""
        texts = _check_texts("texts", texts)
        k = whole_number("k", k, 1)
        exclusions = []
        if exclude is not None:
            exclude = _check_texts("exclude", exclude)
            if len(exclude) != len(texts):
                raise InputError(f"`exclude` has {len(exclude)} targets for {len(texts)} texts")
            own = pair_keys(sentence_keys(texts), sentence_keys(exclude))
            exclusions.append(Exclusion(pair_keys(*self.pairs.keys)[None], own[:, None]))
        if exclude_sentences is not None:
            exclusions.append(Exclusion(self.pairs.keys, _hash_lists(exclude_sentences, len(texts))))
        scores = np.zeros((len(texts), min(k, len(self))), np.float32)
        rows = np.full(scores.shape, -1)
        # As many more are searched for as may have to be left out; where they are many, for those texts alone. Powers
        # of two, or 0: so few different ones that texts can be searched for together.
        counts = sum((exclusion.count() for exclusion in exclusions), np.zeros(len(texts), np.int64))
        extra = np.where(counts, 2 ** np.ceil(np.log2(np.maximum(counts, 1))), 0).astype(np.int64)
        for width in np.unique(extra):
            places = np.flatnonzero(extra == width)
            found_scores, found = self._search([texts[place] for place in places], k + int(width))
            # -1, the number of what was not found, is that of the last pair in `applies`, which changes nothing.
            kept = (found >= 0) & ~sum((one.applies(places, found) for one in exclusions), np.zeros(found.shape, bool))
            order = np.argsort(~kept, axis=1, kind="stable")[:, : rows.shape[1]]
            kept, found_scores, found = (np.take_along_axis(each, order, 1) for each in (kept, found_scores, found))
            scores[places], rows[places] = np.where(kept, found_scores, 0), np.where(kept, found, -1)
        return scores, rows

    def count_shared(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Count the pairs that have one of each list of sentences, on either side, shape (lists,); a pair of two of
        them counts twice."""
        return Exclusion(self.pairs.keys, _hash_lists(sentences, len(sentences))).count()

    def _search(self, texts: list[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Search once for a text that comes several times, as the sources of a corpus often do."""
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        scores, rows = self.index.search(list(places), k)
        order = [places[text] for text in texts]
        return scores[order], rows[order]

    def neighbors(self, dataset: datasets.Dataset, k: int) -> datasets.Dataset:
        """Find the pairs nearest to every row of a dataset, but never the row itself or a pair of the same sentences.

        The results are cached part by part, as by `Dataset.map`: an interrupted search resumes.

        Args:
            dataset: Has the column `source`, and `target`, if there are pairs not to be found.
            k: Pairs for each row.

        Returns:
            The dataset with the columns `retrieved_sources`, `retrieved_targets` and `retrieved_scores`, lists of
            `k`, the best first; shorter only where the memory has fewer.
        """
        if "source" not in dataset.column_names:
            raise InputError(f"`dataset` has no column source, only {', '.join(dataset.column_names)}")
        texts = dataset.with_format(None).select_columns(
            [name for name in ("source", "target") if name in dataset.column_names]
        )

        def find(batch: dict[str, list[str]]) -> dict[str, list[list[Any]]]:
            found = self.retrieve(batch["source"], k, exclude=batch.get("target"))
            return {
                f"retrieved_{name}s": [[getattr(pair, name) for pair in pairs] for pairs in found]
                for name in ("source", "target", "score")
            }

        parts, count = [], ceil(len(dataset) / ROWS_A_FILE)
        for part in range(count):
            rows = texts.select(range(part * ROWS_A_FILE, min((part + 1) * ROWS_A_FILE, len(dataset))))
            title = f"neighbors, part {part + 1} of {count}"
            options = {"batch_size": ROWS_AT_ONCE, "features": FEATURES, "desc": title}
            parts.append(map_once(rows, find, "neighbors", self.fingerprint, k, **options))
        dataset = dataset.remove_columns([name for name in FEATURES if name in dataset.column_names])
        if not parts:
            features = datasets.Features({**dataset.features, **FEATURES})
            return datasets.Dataset.from_dict({name: [] for name in features}, features=features)
        return datasets.concatenate_datasets([dataset, datasets.concatenate_datasets(parts)], axis=1)

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Write `pairs.parquet`, `index.faiss` (if there are vectors) and `retriever_config.json` to a folder.

        The encoder goes to the subfolder `encoder`, unless it is a function or part of an encoder-decoder.

        Args:
            save_directory: A folder that is new, or holds a retriever, which is replaced.

        Raises:
            FileExistsError: The folder holds something else.
        """
        save_pairs_and_index(Path(save_directory), self.pairs, self.index, self.compare)

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike,
        encoder: EncoderLike | None = None,
        *,
        subfolder: str = "",
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | os.PathLike | None = None,
        local_files_only: bool = False,
        trust_remote_code: bool = False,
        **encoder_kwargs: Any,
    ) -> ParaphraseRetriever:
        """Read a retriever that was saved.

        Args:
            path: A folder or a Hub repository.
            encoder: Its encoder, if the folder does not contain it: a function, or the encoder of an encoder-decoder.
            subfolder: Subfolder of the retriever; in a model's checkpoint it is `retriever`.
            revision: A branch, tag or commit of the repository.
            token: For a repository that is not public.
            cache_dir: Where downloads are kept.
            local_files_only: Use only cached files, without network access.
            trust_remote_code: Let the encoder run its own code, and open one that the retriever's config names.
            encoder_kwargs: `device` and `batch_size` of the encoder.

        Raises:
            FileNotFoundError: There is no retriever.
            InputError: The files are damaged, or do not go together or with the encoder; the message says what.
        """
        folder = Path(path)
        if not folder.is_dir():
            hub = {"revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
            folder = _download(os.fspath(path), subfolder, **hub)
        if not trust_remote_code:
            check_links(folder)
        return cls(*load_pairs_and_index(folder / subfolder, encoder, trust_remote_code, **encoder_kwargs))

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
        """Upload the retriever's files to a Hub repository in one commit; it is created if missing.

        Args:
            repo_id: The repository, a model's.
            subfolder: Subfolder for them, such as `retriever`; by default the root.
            commit_message: Commit message.
            private: Whether a new repository is private.
            token: Who you are; None for the token of `hf auth login`.
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


def _download(repo_id: str, subfolder: str, **hub: Any) -> Path:
    patterns = [f"{subfolder}/{name}" if subfolder else name for name in (*FILES, f"{ENCODER_FOLDER}/*")]
    try:
        use_cache_without_network(repo_id, hub["local_files_only"])
        return Path(snapshot_download(repo_id, allow_patterns=patterns, **hub))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(describe_absence(repo_id, "folder")) from error


def _hash_lists(lists: Sequence[Sequence[str]], count: int) -> np.ndarray:
    """The `sentence_keys` of lists of sentences, shape (lists, most sentences), padded with zeros."""
    lists = [_check_texts(f"exclude_sentences[{place}]", texts) for place, texts in enumerate(lists)]
    if len(lists) != count:
        raise InputError(f"`exclude_sentences` has {len(lists)} lists of sentences for {count} texts")
    sizes = np.fromiter(map(len, lists), np.int64, count)
    keys = np.zeros((count, sizes.max(initial=0)), np.uint64)
    keys[np.arange(keys.shape[1]) < sizes[:, None]] = sentence_keys(chain.from_iterable(lists))
    return keys


def _check_texts(name: str, texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError(f"`{name}` is one text: pass a list of texts")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"`{name}`, number {place}: this is of type {type(text).__name__}, not a text")
    return texts
