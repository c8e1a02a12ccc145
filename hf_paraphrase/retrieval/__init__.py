"""Finding sentence pairs whose source is like a text: encoders, indexes, and the memory of pairs.

Names that need `datasets` and FAISS are loaded on first use: paraphrasing needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names
from .encoders import (
    DEFAULT_ENCODER,
    AutoModelEncoder,
    CallableEncoder,
    SentenceEncoder,
    SentenceTransformerEncoder,
    load_encoder,
)

if TYPE_CHECKING:
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

MODULES = dict.fromkeys(("ParaphraseRetriever", "RetrievedPair"), "retriever")
__getattr__ = lazy_names(__name__, MODULES | dict.fromkeys(("MinedPair", "mine_paraphrases"), "mining"))
