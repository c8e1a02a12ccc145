from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...tokenization.word_vectors import WordVectors, load_word_vectors
from ..inputs import check_texts, count_references
from ..sufficient_statistics import Scores, SufficientStatistics, divide
from ..words import sign_words, split_words

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

_NAMES = ("embedding_greedy", "embedding_average", "embedding_extrema")
# Numbers in the largest array of a batch of pairs.
_CHUNK = 2_000_000


def embedding_greedy(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    word_vectors: str | os.PathLike | WordVectors | KeyedVectors,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Scores:
    """Embedding greedy: greedy matching of word vectors; also the average and the extrema of the vectors.

    Greedy matching takes for every word of one text the largest cosine with a word of the other, 0 where all are
    negative, and averages over the words and over both directions. `average` and `extrema` are the cosines of the
    texts' mean vectors, and of the vectors that hold in every dimension the number farthest from 0.

    Args:
        predictions: One text each.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. Of
            several the most similar one counts, for each of the three scores on its own.
        word_vectors: A file, plain or gzipped, of text (`word v1 v2 …` on each line: GloVe, word2vec, fastText) or,
            named `.bin`, in word2vec's binary format (Google News); what `load_word_vectors` made of it, or gensim's
            `KeyedVectors`. Words without a vector are left out; a text without any word that has one, such as an empty
            text, scores 0.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case the texts, for vectors of lower-case words.

    Returns:
        `score` (greedy matching), `average`, `extrema` (0 to 100; the last two can be negative), `signature`.

    Raises:
        InputError: Input that cannot be scored, or a file that holds no word vectors.

    Examples:
        >>> metric = load_metric("embedding_greedy")
        >>> scores = metric.compute(predictions=["a dog"], references=["a puppy"], word_vectors="glove.6B.300d.txt")

    Limits:
        - Scores depend on the vectors more than on the texts: in 50 dimensions all sentences are alike.

    Source: Rus and Lintean 2012 (greedy); Forgues et al. 2014 (extrema). Greedy is 100 times the figure of the script
    that Prakash et al. 2016 used (hed-dlg-truncated) on vectors of unit length; that script takes plain dot products,
    and averages before it normalises, as we do.
    """
    predictions, references = check_texts(predictions, references)
    ours = split_words(predictions, tokenize=tokenize, lowercase=lowercase)
    flat = (text for texts in references for text in texts)
    theirs = split_words(flat, tokenize=tokenize, lowercase=lowercase)
    vectors_name = "given"
    if isinstance(word_vectors, (str, os.PathLike)):
        vectors_name = Path(word_vectors).name
        word_vectors = load_word_vectors(word_vectors, {word for words in (*ours, *theirs) for word in words})
    table, encoded = _encode([*ours, *theirs], word_vectors)
    counts = [len(texts) for texts in references]
    # The number of the prediction, and of the reference, of every pair.
    pairs = np.stack([np.repeat(np.arange(len(ours)), counts), len(ours) + np.arange(len(theirs))], axis=1)
    best = np.maximum.reduceat(_score_pairs(table, encoded, pairs), np.cumsum([0, *counts[:-1]]))
    signature = f"nrefs:{count_references(references)}|{sign_words(tokenize, lowercase)}"
    signature += f"|vectors:{vectors_name}|dim:{table.shape[1]}"
    statistics = [
        SufficientStatistics.from_sentence_scores(name, column, signature, scale=100)
        for name, column in zip(_NAMES, best.T, strict=True)
    ]
    scores = zip(("score", "average", "extrema"), (one.score for one in statistics), strict=True)
    return Scores(statistics, {**dict(scores), "signature": signature})


def _encode(texts: list[list[str]], word_vectors: WordVectors | KeyedVectors) -> tuple[np.ndarray, list[list[int]]]:
    """A table of the vectors that occur, with a row of zeros at the end, and each text as rows of it."""
    rows: dict[int, int] = {}
    known = word_vectors.key_to_index
    encoded = [[rows.setdefault(known[word], len(rows)) for word in words if word in known] for words in texts]
    vectors = np.asarray(word_vectors.vectors)
    return np.vstack([vectors[list(rows)], np.zeros(vectors.shape[1])]).astype(float), encoded


def _score_pairs(table: np.ndarray, encoded: list[list[int]], pairs: np.ndarray) -> np.ndarray:
    """Scores `(pairs, 3)`, batched over pairs of similar length."""
    lengths = np.array([len(words) for words in encoded])[pairs]
    units = divide(table, np.linalg.norm(table, axis=1, keepdims=True))
    scores = np.zeros((len(pairs), len(_NAMES)))
    for chosen in _batches(lengths, table.shape[1]):
        first, second = (
            _pad([encoded[text] for text in pairs[chosen, side]], padding=len(table) - 1) for side in (0, 1)
        )
        scores[chosen, 0] = _match_greedily(units[first], units[second], lengths[chosen])
        scores[chosen, 1] = _cosine(table[first].sum(axis=1), table[second].sum(axis=1))
        scores[chosen, 2] = _cosine(_extrema(table[first]), _extrema(table[second]))
    return scores


def _batches(lengths: np.ndarray, dimension: int) -> Iterator[np.ndarray]:
    order = np.lexsort((lengths[:, 1], lengths[:, 0]))
    order = order[lengths[order].min(axis=1) > 0]
    start = 0
    while start < len(order):
        # By the length of the first side; a long second side among them makes the batch wide, but no wider than this.
        room = max(1, _CHUNK // (dimension * int(lengths[order[start]].sum())))
        widest = lengths[order[start : start + room]].max(axis=0).sum()
        room = max(1, _CHUNK // (dimension * int(widest)))
        yield order[start : start + room]
        start += room


def _pad(rows: list[list[int]], padding: int) -> np.ndarray:
    width = max(map(len, rows))
    return np.array([row + [padding] * (width - len(row)) for row in rows])


def _match_greedily(first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    cosines = np.maximum(first @ second.transpose(0, 2, 1), 0)
    one_way, other_way = cosines.max(axis=2).sum(axis=1), cosines.max(axis=1).sum(axis=1)
    return (one_way / lengths[:, 0] + other_way / lengths[:, 1]) / 2


def _extrema(vectors: np.ndarray) -> np.ndarray:
    """In every dimension the number that is farthest from 0, to which rows of zeros add nothing."""
    low, high = vectors.min(axis=1), vectors.max(axis=1)
    return np.where(-low > high, low, high)


def _cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return divide((first * second).sum(axis=1), norms)
