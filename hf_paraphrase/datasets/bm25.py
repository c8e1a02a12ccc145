"""BM25 search for texts that share words with a query: BM25, for corpora whose wrong candidates should look right."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import bm25s


def index_texts(texts: list[str]) -> bm25s.BM25:
    """Index texts for `search`, scored as Lucene does."""
    import bm25s

    # It reports every index that it makes.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    return index


def search(index: bm25s.BM25, text: str, size: int) -> np.ndarray:
    """The places of the texts that are most like another, in order of place; of equal ones the first count.

    Args:
        index: What `index_texts` made.
        text: The other.
        size: Maximum number of results; texts without a common word are not found.
    """
    import bm25s

    (tokens,) = bm25s.tokenize([text], return_ids=False, show_progress=False)
    if not tokens:
        return np.array([], dtype=np.int64)
    scores = index.get_scores(tokens)
    # bm25s's own selection breaks ties depending on installed packages, and is slower.
    found = np.flatnonzero(scores > 0)
    if len(found) <= size:
        return found
    scores = scores[found]
    least = np.partition(scores, -size)[-size]
    better, equal = found[scores > least], found[scores == least]
    return np.sort(np.concatenate((better, equal[: size - len(better)])))
