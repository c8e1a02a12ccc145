"""Finding sentence pairs whose source is like a text: encoders, indexes, and the memory of pairs."""

from __future__ import annotations

from .encoders import (
    DEFAULT_ENCODER,
    AutoModelEncoder,
    CallableEncoder,
    SentenceEncoder,
    SentenceTransformerEncoder,
    load_encoder,
)
from .mining import MinedPair, mine_paraphrases
from .retriever import ParaphraseRetriever, RetrievedPair

__all__ = [
    "DEFAULT_ENCODER",
    "AutoModelEncoder",
    "CallableEncoder",
    "MinedPair",
    "ParaphraseRetriever",
    "RetrievedPair",
    "SentenceEncoder",
    "SentenceTransformerEncoder",
    "load_encoder",
    "mine_paraphrases",
]
