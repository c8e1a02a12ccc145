"""Pairs, and encoders of them, for tests of retrieval."""

from __future__ import annotations

import random

import numpy as np

PAIRS = [
    ("how do i learn python", "what is the best way to learn python"),
    ("how do i learn python fast", "how can i learn python quickly"),
    ("what is the capital of france", "which city is the capital of france"),
    ("how can i lose weight", "what is the best way to lose weight"),
    ("who wrote hamlet", "who is the author of hamlet"),
]
WORDS = [
    "how",
    "do",
    "i",
    "learn",
    "to",
    "cook",
    "what",
    "is",
    "the",
    "best",
    "way",
    "fast",
    "quickly",
    "lose",
    "weight",
    "who",
    "wrote",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "?",
    "!",
]


def random_pairs(count: int, seed: int = 0, longest: int = 12) -> list[tuple[str, str]]:
    """Pairs of sentences of so many words at most, frequent and rare ones; many come twice."""
    draw = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]

    def sentence() -> str:
        return " ".join(draw.choices(WORDS, weights, k=draw.randint(1, longest)))

    return [(sentence(), sentence()) for _ in range(count)]


def count_letters(texts: list[str]) -> np.ndarray:
    """An encoder without a model: how often each letter comes."""
    return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float)
