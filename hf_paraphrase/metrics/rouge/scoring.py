from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
import regex

from ...common.errors import InputError
from ...common.installation import require
from ..inputs import check_texts, count_references
from ..sufficient_statistics import Scores, SufficientStatistics, divide

_LIBRARY_TYPES = ("rouge1", "rouge2")
TOKENIZE = ("ascii", "unicode")
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# Marks belong to the letter before them: without them Hindi words fall apart.
WORD = regex.compile(rf"[{UNSPACED}]\p{{M}}*|(?:(?![{UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])+")

# Pairs that are computed together.
_AT_ONCE = 2048
# Two lists of tokens.
Pair = tuple[Sequence[str], Sequence[str]]

logger = logging.getLogger(__name__)


def rouge(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    use_stemmer: bool = False,
    weight: float = 1.2,
    tokenize: str = "ascii",
) -> Scores:
    """ROUGE: ROUGE-1, 2 and L with rouge-score's figures, and ROUGE-W; F, precision and recall.

    Overlap of single words (ROUGE-1), pairs (ROUGE-2), the longest common subsequence (ROUGE-L) and the longest common
    subsequence in which an unbroken run of k words is worth k to the power of `weight` (ROUGE-W, the same as ROUGE-L
    where it is 1), each as recall, which older papers call ROUGE, precision and F. The figures of the first three are
    those of rouge-score (https://github.com/google-research/google-research/tree/master/rouge), which has no ROUGE-W.

    rouge-score counts words and pairs; the subsequences of both kinds are found by `weighted_lcs`, many at a time.

    Args:
        predictions: One text each; an empty text scores 0.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. Of
            several the one with the best F counts, for each kind of ROUGE on its own, as in rouge-score.
        use_stemmer: Whether words of more than three letters match by their Porter stem.
        weight: A run of k words in ROUGE-W is worth `k**weight`. Li et al. 2015 name none; 1.2 is what the ROUGE
            package's own evaluations used.
        tokenize: `ascii`, rouge-score's own, drops all but a to z and 0 to 9, so that other scripts score 0 and
            accented letters split words; `unicode` takes runs of letters, marks and digits of any script, and each
            character of scripts that put no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese).

    Returns:
        `rouge1`, `rouge2`, `rougeL` and `rougeW` (mean F of the sentences, 0 to 100), for each of them
        `NAME_precision` and `NAME_recall` (the measure of the paper), `signature`.

    Raises:
        InputError: Input that cannot be scored, or rouge-score is not installed.

    Examples:
        >>> load_metric("rouge").compute(predictions=["a b c d"], references=["a b c e"])["rougeL"]
        75.0

    Limits:
        - Of several references the one with the best F counts, for each kind on its own, as in rouge-score;
          coco-caption combines the best precision with the best recall and weights recall, so its ROUGE-L is higher.
        - By default everything except a to z and 0 to 9 is dropped, as in the first ROUGE: other scripts score 0, with
          a warning, and `où` is `o`. Pass `tokenize="unicode"` for them.
        - Weighted subsequences follow Lin's table to the letter, which takes every match, even where passing it by
          would score more.

    Source: Lin 2004, sections 2 (1 and 2), 3 (L) and 4 (W).
    """
    predictions, references = check_texts(predictions, references)
    if weight < 1:
        raise InputError(f"weight must be at least 1, got {weight}; 1 makes ROUGE-W the same as ROUGE-L")
    if tokenize not in TOKENIZE:
        raise InputError(f"unknown tokenize {tokenize!r} of rouge; available: {', '.join(TOKENIZE)}")
    tokenizer = _make_tokenizer(use_stemmer, tokenize)
    _warn_of_lost_letters([*predictions, *(text for texts in references for text in texts)], tokenizer, tokenize)
    counts = [len(texts) for texts in references]
    pairs = [
        (tokenizer.tokenize(text), tokenizer.tokenize(prediction))
        for prediction, texts in zip(predictions, references, strict=True)
        for text in texts
    ]
    scores = {
        **_score_with_library(predictions, references, tokenizer),
        "rougeL": _score_subsequences(pairs, counts, 1),
        "rougeW": _score_subsequences(pairs, counts, weight),
    }
    signature = f"nrefs:{count_references(references)}|multi:best-f|case:lc|tok:{tokenize}"
    signature += f"|stem:{'porter' if use_stemmer else 'no'}|w:{weight:g}|version:rouge-score-{version('rouge-score')}"
    statistics = [
        SufficientStatistics.from_sentence_scores(name, column, signature, scale=100)
        for kind, array in scores.items()
        for name, column in zip((kind, f"{kind}_precision", f"{kind}_recall"), array.T[[2, 0, 1]], strict=True)
    ]
    return Scores(statistics, {one.name: one.score for one in statistics} | {"signature": signature})


def _score_with_library(predictions: list[str], references: list[list[str]], tokenizer: Any) -> dict[str, np.ndarray]:
    """Arrays `(sentences, 3)` of precision, recall and F."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(_LIBRARY_TYPES, tokenizer=tokenizer)
    rows = []
    for prediction, texts in zip(predictions, references, strict=True):
        scored = [scorer.score(text, prediction) for text in texts]
        rows.append([max((entry[kind] for entry in scored), key=attrgetter("fmeasure")) for kind in _LIBRARY_TYPES])
    array = np.array(rows, dtype=float)
    return {kind: array[:, index] for index, kind in enumerate(_LIBRARY_TYPES)}


def _score_subsequences(pairs: list[Pair], counts: list[int], weight: float) -> np.ndarray:
    """Array `(sentences, 3)` from pairs of reference and prediction, of which each sentence has its count."""
    matched = weighted_lcs(pairs, weight)
    recall_limit, precision_limit = (np.array([len(pair[side]) for pair in pairs]) ** weight for side in (0, 1))
    recall = divide(matched, recall_limit) ** (1 / weight)
    precision = divide(matched, precision_limit) ** (1 / weight)
    fmeasure = divide(2 * precision * recall, precision + recall)
    scores = np.stack([precision, recall, fmeasure], axis=1)
    blocks = np.split(scores, np.cumsum(counts)[:-1])
    return np.stack([block[block[:, 2].argmax()] for block in blocks])


def _make_tokenizer(use_stemmer: bool, tokenize: str) -> Any:
    """A tokenizer of rouge-score that remembers texts and stems: a prediction meets several references, twice."""
    require("rouge_score", "metrics", "rouge", package="rouge-score")
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenize import tokenize as tokenize_ascii

    stemmer = SimpleNamespace(stem=lru_cache(maxsize=100_000)(PorterStemmer().stem)) if use_stemmer else None
    split = partial(_split_unicode if tokenize == "unicode" else tokenize_ascii, stemmer=stemmer)
    return SimpleNamespace(tokenize=lru_cache(maxsize=None)(split))


def _split_unicode(text: str, stemmer: Any) -> list[str]:
    words = WORD.findall(unicodedata.normalize("NFC", text).casefold())
    # As rouge-score does, whose authors found stems of short words misleading.
    return words if stemmer is None else [stemmer.stem(word) if len(word) > 3 else word for word in words]


def _warn_of_lost_letters(texts: list[str], tokenizer: Any, tokenize: str) -> None:
    lettered = [text for text in texts if any(map(str.isalnum, text))]
    empty = sum(not tokenizer.tokenize(text) for text in lettered)
    if tokenize == "unicode":
        lost = empty
    else:
        lost = sum(any(letter.isalnum() and not letter.isascii() for letter in text) for text in lettered)
    if lost:
        message = "rouge: of %d texts %d have letters that its %s tokenizer drops, %d of them all; tokenize='unicode' "
        logger.warning(message + "reads every script", len(texts), lost, tokenize, empty)


def weighted_lcs(pairs: Sequence[Pair], weight: float) -> np.ndarray:
    """Weighted longest common subsequence of each pair of token lists, `(pairs,)`; a run of k tokens is worth
    `k**weight`.

    The table of a pair is filled diagonal by diagonal, for many pairs at once. It follows the source to the letter: a
    match is always taken, also where leaving it out would score more. A weight of 1 gives the plain subsequence.

    Source: Lin 2004, section 4.
    """
    lengths = np.array([(len(x), len(y)) for x, y in pairs]).reshape(len(pairs), 2)
    gains = np.diff(np.arange(int(lengths.max(initial=0)) + 2, dtype=float) ** weight)
    values = np.zeros(len(pairs))
    order = np.lexsort((lengths[:, 1], lengths[:, 0]))  # pairs of similar length together, to minimise padding
    for start in range(0, len(order), _AT_ONCE):
        chosen = order[start : start + _AT_ONCE]
        values[chosen] = _fill_tables([pairs[index] for index in chosen], lengths[chosen], gains)
    return values


def _fill_tables(pairs: list[Pair], lengths: np.ndarray, gains: np.ndarray) -> np.ndarray:
    x, y = _encode(pairs, lengths)
    (m, n), rows, corners = lengths.max(axis=0), np.arange(len(pairs)), lengths.sum(axis=1)
    # Column i of a diagonal is the cell of i tokens of x; y runs backwards along it.
    y = np.pad(y, ((0, 0), (m, m)), constant_values=-2)[:, ::-1]
    empty = np.zeros((len(pairs), m + 1))
    before, last = (empty, empty.astype(int)), (empty, empty.astype(int))
    values = np.zeros(len(pairs))
    for diagonal in range(2, m + n + 1):
        matches = x == y[:, m + n - diagonal + 1 :][:, :m]
        run, score = before[1][:, :-1], before[0][:, :-1]
        scores, runs = np.zeros_like(empty), np.zeros_like(before[1])
        scores[:, 1:] = np.where(matches, score + gains[run], np.maximum(last[0][:, :-1], last[0][:, 1:]))
        runs[:, 1:] = np.where(matches, run + 1, 0)
        ended = rows[corners == diagonal]
        values[ended] = scores[ended, lengths[ended, 0]]
        before, last = last, (scores, runs)
    return values


def _encode(pairs: list[Pair], lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Token ids, padded with numbers that match nothing."""
    ids: dict[str, int] = {}
    encoded = []
    for side, padding in ((0, -1), (1, -2)):
        array = np.full((len(pairs), lengths[:, side].max()), padding)
        for row, pair in enumerate(pairs):
            array[row, : len(pair[side])] = [ids.setdefault(token, len(ids)) for token in pair[side]]
        encoded.append(array)
    return encoded[0], encoded[1]
