from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
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
    vectors_name = "given"
    ours = split_words(predictions, tokenize=tokenize, lowercase=lowercase)
    theirs = [split_words(texts, tokenize=tokenize, lowercase=lowercase) for texts in references]
    if isinstance(word_vectors, (str, os.PathLike)):
        vectors_name = Path(word_vectors).name
        word_vectors = load_word_vectors(word_vectors, {*chain.from_iterable([*ours, *chain.from_iterable(theirs)])})
    known, vectors = word_vectors.key_to_index, np.asarray(word_vectors.vectors)

    def look_up(words: list[str]) -> np.ndarray:
        return vectors[[known[word] for word in words if word in known]].astype(float)

    best = np.array(
        [
            np.max([_score_pair(look_up(output), look_up(text)) for text in texts], axis=0)
            for output, texts in zip(ours, theirs, strict=True)
        ]
    )
    signature = f"nrefs:{count_references(references)}|{sign_words(tokenize, lowercase)}"
    signature += f"|vectors:{vectors_name}|dim:{vectors.shape[1]}"
    statistics = [
        SufficientStatistics.from_sentence_scores(name, column, signature, scale=100)
        for name, column in zip(_NAMES, best.T, strict=True)
    ]
    scores = zip(("score", "average", "extrema"), (one.score for one in statistics), strict=True)
    return Scores(statistics, {**dict(scores), "signature": signature})


def _score_pair(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """The three scores of two texts, given the vectors `(words, dimension)` of their words."""
    if not len(first) or not len(second):
        return 0.0, 0.0, 0.0
    ours, theirs = (divide(words, np.linalg.norm(words, axis=1, keepdims=True)) for words in (first, second))
    cosines = np.maximum(ours @ theirs.T, 0)
    greedy = (cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2
    return greedy, _cosine(first.sum(axis=0), second.sum(axis=0)), _cosine(_extrema(first), _extrema(second))


def _extrema(vectors: np.ndarray) -> np.ndarray:
    """In every dimension the number that is farthest from 0."""
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    return np.where(-low > high, low, high)


def _cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(divide(first @ second, np.asarray(np.linalg.norm(first) * np.linalg.norm(second))))
