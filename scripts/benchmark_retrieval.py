"""The part `retrieval` of benchmark.py: neighbours of a whole corpus, and a million vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import torch

import hf_paraphrase
from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.models.candidate_selection import token_set
from hf_paraphrase.retrieval import load_encoder
from hf_paraphrase.retrieval.vector_index import VectorIndex

Row = tuple[str, str, str, str, str]

# Numbers in a vector of all-MiniLM-L6-v2.
DIMENSION = 384
K = 5
VECTORS, QUERIES = 1_000_000, 2_000
# Rows that brute force takes at once, and how many of the corpus it is timed on where it would take minutes.
BLOCK, SAMPLE = 1000, 6000


def clustered_vectors(count: int, seed: int, topics: int = 10_000, spread: float = 0.7) -> np.ndarray:
    """Vectors as sentence embeddings lie: topics of Zipf-like sizes, most of the variance in few directions.

    The cosine of two of them is 0.00 ± 0.10, and that of one with its nearest of a million 0.75, where sentences of
    all-MiniLM-L6-v2 have about as much.

    Args:
        count: Vectors.
        seed: Of the vectors; the topics are the same for all seeds.
        topics: How many there are; the n-th is as frequent as 1/√n.
        spread: Length of a vector's difference from its topic, where the topic's is 1.

    Returns:
        Vectors of length 1, shape (count, DIMENSION).
    """
    draw = np.random.default_rng(seed)
    scale = np.arange(1, DIMENSION + 1, dtype=np.float32) ** -0.35
    centres = _unit(np.random.default_rng(1).standard_normal((topics, DIMENSION), np.float32) * scale)
    weights = np.arange(1, topics + 1) ** -0.5
    vectors = np.empty((count, DIMENSION), np.float32)
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
    words: dict[str, np.ndarray] = {}
    draw = np.random.default_rng(0)

    def vector(text: str) -> np.ndarray:
        return sum(
            words.setdefault(word, draw.standard_normal(DIMENSION, np.float32)) for word in sorted(token_set(text))
        )

    return {text: _unit(vector(text)[None])[0] for text in texts}


def multiply_vectors(vectors: torch.Tensor) -> torch.Tensor:
    """Every row's nearest rows but itself by a matrix product."""
    found = []
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        scores = block @ vectors.T
        scores[torch.arange(len(block)), start + torch.arange(len(block))] = -1
        found.append(scores.topk(K).indices)
    return torch.cat(found)


def multiply_token_sets(texts: list[str]) -> torch.Tensor:
    """The most similar rows of the first SAMPLE texts by a product of matrices of zeros and ones."""
    vocabulary: dict[str, int] = {}
    sets = [[vocabulary.setdefault(token, len(vocabulary)) for token in token_set(text)] for text in texts]
    sizes = torch.tensor([len(tokens) for tokens in sets])
    starts = torch.cat((torch.zeros(1, dtype=torch.long), sizes.cumsum(0)))
    tokens = torch.tensor([token for tokens in sets for token in tokens])
    matrix = torch.sparse_csr_tensor(starts, tokens, torch.ones(len(tokens)), (len(sets), len(vocabulary)))
    found = []
    for start in range(0, SAMPLE, BLOCK):
        dense = torch.zeros(len(vocabulary), BLOCK)
        for column, tokens in enumerate(sets[start : start + BLOCK]):
            dense[tokens, column] = 1
        shared = (matrix @ dense).T
        scores = shared / (sizes[None] + sizes[start : start + BLOCK, None] - shared)
        scores[torch.arange(BLOCK), start + torch.arange(BLOCK)] = -1
        found.append(scores.topk(K).indices)
    return torch.cat(found)


def quora_rows(folder: Path, seconds: Callable) -> list[Row]:
    """Neighbours of all training pairs, found, read from the memory and written as columns, against bare products."""
    pairs = hf_paraphrase.load_dataset("quora", "clean", data_dir=folder, split="train")
    texts = pairs["source"][:]
    vectors = word_vectors(texts)
    encoders = {"vectors": lambda texts: np.stack([vectors[text] for text in texts]), "jaccard": "jaccard"}
    table = torch.from_numpy(encoders["vectors"](texts))
    theirs = {
        "vectors": (1, lambda: multiply_vectors(table)),
        "jaccard": (len(texts) / SAMPLE, lambda: multiply_token_sets(texts)),
    }
    rows = []
    for kind, encoder in encoders.items():
        taken = seconds(lambda encoder=encoder: ParaphraseRetriever.from_pairs(pairs, encoder).neighbors(pairs, K))
        times, multiply = theirs[kind]
        product = times * seconds(multiply)
        name = f"{len(texts):,} neighbours, {kind}, s"
        rows.append((name, "matrix product in torch", f"{taken:.1f}", f"{product:.1f}", f"{product / taken:.2f}"))
    return rows


def million_rows(
    kind: str, make: Callable[[int, int], np.ndarray], repeats: int, in_turn: Callable, seconds: Callable
) -> list[Row]:
    """Build time, queries/s and recall of the automatic index against comparing all vectors."""
    known, asked = make(VECTORS, 2), make(QUERIES, 3)
    # The texts are the numbers of rows, so that no encoder takes part in what is measured.
    numbers = [str(number) for number in range(VECTORS)]
    batches = [numbers[start : start + BLOCK] for start in range(0, VECTORS, BLOCK)]
    index, exact = VectorIndex(load_encoder(take_rows(known))), VectorIndex(load_encoder(take_rows(known)), "Flat")
    builds = [seconds(partial(each.add, batches, VECTORS)) for each in (index, exact)]
    index.encoder = exact.encoder = load_encoder(take_rows(asked))
    questions = numbers[:QUERIES]
    ours, theirs, ratio = in_turn(partial(index.search, questions, K), partial(exact.search, questions, K), repeats)
    found, expected = (each.search(questions, K)[1] for each in (index, exact))
    recall = np.mean([len(set(row) & set(other)) / K for row, other in zip(found, expected, strict=True)])
    against = f"all of {VECTORS:,}, {kind}"
    return [
        (f"{index.description}, built, s", against, *(f"{taken:.0f}" for taken in builds), f"{builds[1] / builds[0]:.2f}"),
        (f"{index.search_parameters}, queries/s", against, f"{QUERIES / ours:,.0f}", f"{QUERIES / theirs:,.0f}", f"{ratio:.1f}"),
        (f"recall@{K}", against, f"{recall:.3f}", "1", f"{recall:.3f}"),
    ]


def take_rows(vectors: np.ndarray) -> Callable[[list[str]], np.ndarray]:
    return lambda numbers: vectors[[int(number) for number in numbers]]


def retrieval(device: str, repeats: int, quora: Path | None, in_turn: Callable, seconds: Callable) -> list[Row]:
    """All of it: Quora's training pairs where there is a folder with them, then both kinds of vectors.

    Args:
        device: cpu or cuda, as far as FAISS has it.
        repeats: Pairs of runs of the queries; what takes minutes runs once.
        quora: The folder with Quora's file.
        in_turn: That of benchmark.py.
        seconds: That of benchmark.py.
    """
    in_turn, seconds = partial(in_turn, device=device), partial(seconds, device=device)
    rows = []
    if quora is not None:
        with tempfile.TemporaryDirectory() as cache:
            # So that nothing is found that an earlier run left.
            datasets.config.HF_DATASETS_CACHE = cache
            rows += quora_rows(quora, seconds)
    for kind, make in (("clustered", clustered_vectors), ("uniform", uniform_vectors)):
        rows += million_rows(kind, make, repeats, in_turn, seconds)
    return rows
