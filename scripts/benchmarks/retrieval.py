"""The retriever: neighbours of a whole corpus, and search among a million vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import datasets
import faiss
import numpy as np
import torch

from hf_paraphrase import ParaphraseRetriever, load_dataset
from hf_paraphrase.models.text.candidate_selection import token_set
from hf_paraphrase.retrieval import load_encoder
from hf_paraphrase.retrieval.vector_index import VectorIndex

from .timing import Row, in_turn, seconds

# Numbers in a vector of all-MiniLM-L6-v2.
DIMENSION = 384
K = 5
VECTORS, QUERIES = 1_000_000, 2_000
# Rows that brute force takes at once, and how many of the corpus it is timed on where it would take minutes.
BLOCK, SAMPLE = 1000, 6000


def clustered_vectors(
    count: int, seed: int, topics: int = 10_000, spread: float = 0.7, dimension: int = DIMENSION
) -> np.ndarray:
    """Vectors as sentence embeddings lie: topics of Zipf-like sizes, most of the variance in few directions.

    The cosine of two of them is 0.00 ± 0.10, and that of one with its nearest of a million 0.75, where sentences of
    all-MiniLM-L6-v2 have about as much.

    Args:
        count: Vectors.
        seed: Of the vectors; the topics are the same for all seeds.
        topics: How many there are; the n-th is as frequent as 1/√n.
        spread: Length of a vector's difference from its topic, where the topic's is 1.
        dimension: Numbers in a vector.

    Returns:
        Vectors of length 1, shape (count, dimension).
    """
    draw = np.random.default_rng(seed)
    scale = np.arange(1, dimension + 1, dtype=np.float32) ** -0.35
    centres = _unit(np.random.default_rng(1).standard_normal((topics, dimension), np.float32) * scale)
    weights = np.arange(1, topics + 1) ** -0.5
    vectors = np.empty((count, dimension), np.float32)
    for start in range(0, count, 50_000):
        part = vectors[start : start + 50_000]
        own = _unit(draw.standard_normal(part.shape, np.float32) * scale)
        part[:] = _unit(centres[draw.choice(topics, len(part), p=weights / weights.sum())] + spread * own)
    return vectors


def uniform_vectors(count: int, seed: int) -> np.ndarray:
    """Vectors in all directions alike: no index can know where the nearest are."""
    return _unit(np.random.default_rng(seed).standard_normal((count, DIMENSION), np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def word_vectors(texts: list[str]) -> dict[str, np.ndarray]:
    """A vector for each text without a model: the sum of random vectors of its tokens."""
    draw = np.random.default_rng(0)
    words = {
        word: draw.standard_normal(DIMENSION, np.float32)
        for word in sorted({word for text in texts for word in token_set(text)})
    }
    return {text: _unit(np.sum([words[word] for word in token_set(text)], axis=0)[None])[0] for text in texts}


def multiply_vectors(vectors: torch.Tensor) -> torch.Tensor:
    """Every row's nearest rows but itself by a matrix product."""
    found = []
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        scores = block @ vectors.T
        scores[torch.arange(len(block)), start + torch.arange(len(block))] = -1
        found.append(scores.topk(K).indices)
    return torch.cat(found)


def token_matrix(texts: list[str]) -> torch.Tensor:
    """Ones where a text has a token: shape (texts, tokens), sparse."""
    vocabulary: dict[str, int] = {}
    sets = [[vocabulary.setdefault(token, len(vocabulary)) for token in token_set(text)] for text in texts]
    places = torch.tensor([(row, token) for row, tokens in enumerate(sets) for token in tokens]).T
    shape = (len(sets), len(vocabulary))
    return torch.sparse_coo_tensor(places, torch.ones(places.shape[1]), shape, check_invariants=False).coalesce()


def multiply_token_sets(tokens: torch.Tensor) -> torch.Tensor:
    """The most similar rows of the first SAMPLE texts by a product of matrices of zeros and ones."""
    sizes = tokens.sum(dim=1).to_dense()
    found = []
    for start in range(0, SAMPLE, BLOCK):
        block = tokens.index_select(0, start + torch.arange(BLOCK)).to_dense()
        shared = (tokens @ block.T).T.contiguous()
        scores = shared / (sizes + sizes[start : start + BLOCK, None] - shared)
        scores[torch.arange(BLOCK), start + torch.arange(BLOCK)] = -1
        found.append(scores.topk(K).indices)
    return torch.cat(found)


def benchmark_neighbors(device: str, repeats: int, quora_dir: Path | None = None) -> list[Row]:
    """Neighbours of all training pairs, as columns of the dataset, against bare matrix products; each runs once.

    Args:
        device: cpu or cuda, for the products.
        repeats: Not used: a run takes a minute.
        quora_dir: The folder with Quora's file; None for the questions of the built-in grammar.
    """
    corpus = ("synthetic_questions",) if quora_dir is None else ("quora", "clean", quora_dir)
    pairs = load_dataset(*corpus, split="train")
    texts = pairs["source"][:]
    vectors = word_vectors(texts)
    table, tokens = torch.from_numpy(np.stack([vectors[text] for text in texts])).to(device), token_matrix(texts)
    kinds = {
        "vector": (lambda texts: np.stack([vectors[text] for text in texts]), 1, lambda: multiply_vectors(table)),
        "Jaccard": ("jaccard", len(texts) / SAMPLE, lambda: multiply_token_sets(tokens)),
    }
    rows = []
    with tempfile.TemporaryDirectory() as cache, patch.object(datasets.config, "HF_DATASETS_CACHE", cache):
        for kind, (encoder, times, multiply) in kinds.items():
            retriever = ParaphraseRetriever.from_pairs(pairs, encoder)
            ours = seconds(partial(retriever.neighbors, pairs, K), device)
            theirs = times * seconds(multiply, device)
            name = f"{len(texts):,} by {kind}, s"
            rows.append((name, "matrix product in torch", f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"))
    return rows


def benchmark_retrieval(device: str, repeats: int) -> Iterator[Row]:
    """Build time, queries/s and recall of the automatic index of a million vectors against comparing them all."""
    for kind, make in (("clustered", clustered_vectors), ("uniform", uniform_vectors)):
        yield from compare_indexes(kind, make, repeats)


def compare_indexes(kind: str, make: Callable[[int, int], np.ndarray], repeats: int) -> Iterator[Row]:
    faiss.omp_set_num_threads(torch.get_num_threads())
    known, asked = make(VECTORS, 2), make(QUERIES, 3)
    # The texts are the numbers of rows, so that no encoder takes part in what is measured.
    numbers = [str(number) for number in range(VECTORS)]
    batches = [numbers[start : start + BLOCK] for start in range(0, VECTORS, BLOCK)]
    index, exact = VectorIndex(load_encoder(take_rows(known))), VectorIndex(load_encoder(take_rows(known)), "Flat")
    ours, theirs = (seconds(partial(each.add, batches, VECTORS), "cpu") for each in (index, exact))
    against = f"{VECTORS:,} {kind} vectors"
    yield f"{index.description}, s", against, f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}"
    index.encoder = exact.encoder = load_encoder(take_rows(asked))
    searches = [partial(each.search, numbers[:QUERIES], K) for each in (index, exact)]
    ours, theirs, ratio = in_turn(*searches, repeats, "cpu")
    speeds = (f"{QUERIES / taken:,.0f}" for taken in (ours, theirs))
    yield Row(
        f"{index.search_parameters}, 1/s", against, *speeds, f"{ratio:.1f}", "≥ 60" if kind == "clustered" else ""
    )
    (_, found), (_, expected) = (search() for search in searches)
    recall = np.mean([len(set(row) & set(other)) / K for row, other in zip(found, expected, strict=True)])
    yield Row(f"recall@{K}", against, f"{recall:.3f}", "1", f"{recall:.3f}", "≥ 0.95" if kind == "clustered" else "")


def take_rows(vectors: np.ndarray) -> Callable[[list[str]], np.ndarray]:
    return lambda numbers: vectors[[int(number) for number in numbers]]
