"""Finding sentence pairs whose source is like a text: encoders, indexes, and the memory of pairs.

Names that need `datasets` and FAISS are loaded on first use: paraphrasing needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names
from .encoders import load_encoder

if TYPE_CHECKING:
    from .mining import mine_paraphrases
    from .retriever import ParaphraseRetriever, RetrievedPair

__all__ = ["ParaphraseRetriever", "RetrievedPair", "load_encoder", "mine_paraphrases"]

MODULES = {"ParaphraseRetriever": "retriever", "RetrievedPair": "retriever", "mine_paraphrases": "mining"}
__getattr__ = lazy_names(__name__, MODULES)
