from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from scipy import sparse

from ..models.text.candidate_selection import token_set

# The most frequent tokens also have a bit each in a mask for every text.
MASKED_TOKENS = 64
# The shares of a query that are left out, one after the other, until the rest decides.
SHARES = (0.6, 0.4, 0.3, 0.2, 0.0)
# Entries of the inverted index that are read at once: few enough to stay in the processor's cache.
ENTRIES_AT_ONCE = 300_000


class JaccardIndex:
    """Exact search for the texts with the highest Jaccard similarity of token sets (Kazemnejad et al. 2020, table 2).

    An inverted index counts the tokens that a query shares with each text. The long lists, of tokens such as "the",
    are most of that work and seldom decide. So the most frequent tokens of a query are left out first, up to a share
    s of them: a text that has none of the others is at most s similar, and where k better ones were found, none was
    missed. Otherwise the query comes again with less left out. Bit masks count the left-out tokens of a text.

    Of equally similar texts the one added first comes first; those that share nothing come last.
    """

    fingerprint = "jaccard"

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._tokens: list[np.ndarray] = []
        self._sizes: list[np.ndarray] = []
        self._built = 0

    def __len__(self) -> int:
        return sum(map(len, self._sizes))

    def add(self, batches: Iterable[list[str] | list[tuple[str, str]]], count: int) -> None:
        """Add `count` texts to the index, numbered on; of a pair, the tokens of both sentences are one set."""
        vocabulary = self._vocabulary
        for texts in batches:
            joined = (text if isinstance(text, str) else " ".join(text) for text in texts)
            sets = [[vocabulary.setdefault(token, len(vocabulary)) for token in token_set(text)] for text in joined]
            self._tokens.append(_flatten(sets))
            self._sizes.append(_sizes(sets))

    def search(self, texts: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the `k` texts most similar to each: similarities, the highest first, and the numbers of the texts, both
        of shape (texts, min(k, len(self)))."""
        k = min(k, len(self))
        scores, rows = np.zeros((len(texts), k), np.float32), np.full((len(texts), k), -1)
        if self._built < len(self):
            self._build()
        if not k:
            return scores, rows
        sets = [token_set(text) for text in texts]
        known = [[self._vocabulary[token] for token in tokens if token in self._vocabulary] for tokens in sets]
        queries = _matrix(self._rank[_flatten(known)], _sizes(known), len(self._vocabulary))
        queries.sort_indices()  # the most frequent token of each first
        waiting, sizes = np.arange(len(texts)), _sizes(sets)
        for share in SHARES:
            undecided = [waiting[:0]]
            for block, kept, left_out in self._blocks(queries, sizes, waiting, share):
                places, ranks, best, found = self._search_block(sizes[block], kept, left_out, k)
                scores[block[places], ranks], rows[block[places], ranks] = best, found
                undecided.append(block[np.bincount(places, minlength=len(block)) < k])
            waiting = np.concatenate(undecided)
        for query in waiting:  # the memory has fewer that share a token
            rows[query] = _fill(rows[query][scores[query] > 0], k)
        return scores, rows

    def _build(self) -> None:
        """Number the tokens by frequency, and make the inverted index and the masks."""
        tokens, sizes = np.concatenate(self._tokens), np.concatenate(self._sizes)
        self._tokens, self._sizes = [tokens], [sizes]
        frequencies = np.bincount(tokens, minlength=len(self._vocabulary))
        self._rank = np.empty(len(frequencies), np.int64)
        self._rank[np.argsort(-frequencies, kind="stable")] = np.arange(len(frequencies))
        self._inverted = _matrix(self._rank[tokens], sizes, len(frequencies)).T.tocsr()
        self._text_sizes = sizes
        self._masks = np.zeros(len(sizes), np.uint64)
        for token in range(min(MASKED_TOKENS, len(frequencies))):
            start, stop = self._inverted.indptr[token : token + 2]
            self._masks[self._inverted.indices[start:stop]] |= np.uint64(1 << token)
        self._built = len(sizes)

    def _blocks(
        self, queries: sparse.csr_array, sizes: np.ndarray, waiting: np.ndarray, share: float
    ) -> Iterator[tuple[np.ndarray, sparse.csr_array, np.ndarray]]:
        """Yield some of the waiting queries with their kept tokens and the masks of those left out."""
        if not len(waiting):
            return
        tokens = queries[waiting]
        query = np.repeat(np.arange(len(waiting)), np.diff(tokens.indptr))
        place = np.arange(tokens.nnz) - tokens.indptr[query]
        left_out = (tokens.indices < MASKED_TOKENS) & (place < np.floor(share * sizes[waiting])[query])
        masks = np.zeros(len(waiting), np.uint64)
        np.bitwise_or.at(masks, query[left_out], np.uint64(1) << tokens.indices[left_out].astype(np.uint64))
        counts = np.bincount(query[~left_out], minlength=len(waiting))
        kept = _matrix(tokens.indices[~left_out], counts, tokens.shape[1])
        work = np.cumsum(kept @ np.diff(self._inverted.indptr))
        number = work // ENTRIES_AT_ONCE
        for block in np.split(np.arange(len(waiting)), np.flatnonzero(np.diff(number)) + 1):
            yield waiting[block], kept[block], masks[block]

    def _search_block(
        self, sizes: np.ndarray, kept: sparse.csr_array, left_out: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Find what is more similar than a text without any of the kept tokens can be, at most k texts a query: for
        each the query, its rank among the query's, its similarity and its number, all of shape (hits,)."""
        found = kept @ self._inverted
        rows, shared = found.indices, found.data
        queries = np.repeat(np.arange(len(sizes)), np.diff(found.indptr))
        if left_out.any():
            shared = shared + np.bitwise_count(left_out[queries] & self._masks[rows])
        scores = shared / (sizes[queries] + self._text_sizes[rows] - shared)
        better = scores > (np.bitwise_count(left_out) / np.maximum(sizes, 1))[queries]
        queries, rows, scores = queries[better], rows[better], scores[better]
        order = np.lexsort((rows, -scores, queries))
        counts = np.bincount(queries, minlength=len(sizes))
        ranks = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order, ranks = order[ranks < k], ranks[ranks < k]
        return queries[order], ranks, scores[order], rows[order]


def _sizes(sets: Sequence[Sequence | set]) -> np.ndarray:
    return np.fromiter(map(len, sets), np.int64, len(sets))


def _flatten(sets: Sequence[Sequence[int]]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(sets), np.int64)


def _matrix(tokens: np.ndarray, sizes: np.ndarray, n_tokens: int) -> sparse.csr_array:
    """Token sets, concatenated, as rows of ones; shape (sets, n_tokens)."""
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return sparse.csr_array((np.ones(len(tokens), np.int32), tokens, starts), shape=(len(sizes), n_tokens))


def _fill(rows: np.ndarray, k: int) -> np.ndarray:
    """Put the first texts that were not found behind those that were, up to `k`."""
    others = np.setdiff1d(np.arange(k + len(rows)), rows)
    return np.concatenate((rows, others))[:k]
