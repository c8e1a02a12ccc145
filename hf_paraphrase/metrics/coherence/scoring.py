from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..inputs import check_lengths, check_text_lists
from ..sufficient_statistics import SufficientStatistics
from .features import choose_features

__all__ = ["coherence", "coherence_statistics"]


def coherence(
    predictions: Iterable[Sequence[str]],
    references: Iterable[Sequence[str]],
    *,
    tagger: str | Callable[[str], Iterable[str]] | None = None,
) -> dict[str, Any]:
    """Coherence L: how far the sentences of an output are from the order of their originals; lower is better.

    Each output sentence is aligned to the input sentence with the best F1 over verbs and nouns; several may share one.
    L is the mean over the pairs of output sentences of `|(j - i) - (j' - i')|`, where i' and j' are the positions that
    i and j are aligned to, and the score is the mean of L over the documents.

    Args:
        predictions: For each document the output's sentences.
        references: For each document the input's sentences, one at least.
        tagger: What finds the verbs and nouns of a sentence: `nltk` (its perceptron tagger), `content` (words that are
            no function words, a stand-in that needs no model), or a function from a sentence to its verbs and nouns,
            for instance one that asks spaCy. None takes nltk where its tagger is installed, else `content`.

    Returns:
        `score` (nan where no document has a pair of aligned sentences), `documents` (how many have one),
        `unaligned` (share of the output sentences that share no feature with the input), `features` (which words the
        alignment went by), `signature`.

    Raises:
        InputError: Input that cannot be scored, or a tagger that is not there; the message says what to do.

    Source: Li et al. 2015, equation 18. The paper leaves open what follows. Between input sentences of equal F1 the
    one nearest to the output sentence's own position is taken, so that a faithful copy scores 0 also where sentences
    repeat. Output sentences that share nothing with the input have no original; their pairs do not count. Documents
    without a pair left have no order to judge, and are left out.
    """
    documents, features, unaligned = _score_documents(predictions, references, tagger)
    statistics = _make_statistics(documents, features)["coherence"]
    scored = sum(score is not None for score in documents)
    return {
        "score": statistics.score if scored else float("nan"),
        "documents": scored,
        "unaligned": unaligned,
        "features": features,
        "signature": statistics.signature,
    }


def coherence_statistics(
    predictions: Iterable[Sequence[str]],
    references: Iterable[Sequence[str]],
    *,
    tagger: str | Callable[[str], Iterable[str]] | None = None,
) -> dict[str, SufficientStatistics]:
    """The statistics of `coherence`, for `hf_paraphrase.metrics.significance`; arguments as there."""
    documents, features, _ = _score_documents(predictions, references, tagger)
    return _make_statistics(documents, features)


def _score_documents(
    predictions: Iterable[Sequence[str]],
    references: Iterable[Sequence[str]],
    tagger: str | Callable[[str], Iterable[str]] | None,
) -> tuple[list[float | None], str, float]:
    """L of each document, what the features are, and the share of unaligned sentences."""
    predictions = check_text_lists("predictions", predictions)
    references = check_text_lists("references", references, minimum=1)
    check_lengths(predictions=predictions, references=references)
    extract, features = choose_features(tagger)
    alignments = [
        _align([Counter(extract(text)) for text in output], [Counter(extract(text)) for text in original])
        for output, original in zip(predictions, references, strict=True)
    ]
    positions = [position for alignment in alignments for position in alignment]
    unaligned = positions.count(None) / len(positions) if positions else 0.0
    return [_disorder(alignment) for alignment in alignments], features, unaligned


def _make_statistics(documents: list[float | None], features: str) -> dict[str, SufficientStatistics]:
    scores, weights = zip(*((0.0, 0) if score is None else (score, 1) for score in documents), strict=True)
    signature = f"features:{features}|align:best-f1"
    ratio = SufficientStatistics.from_ratio("coherence", scores, weights, signature, higher_is_better=False)
    return {"coherence": ratio}


def _align(output: list[Counter[str]], original: list[Counter[str]]) -> list[int | None]:
    """For each output sentence the position of its original; None where none shares a feature."""
    alignment: list[int | None] = []
    for position, sentence in enumerate(output):
        scores = [_f1(sentence, candidate) for candidate in original]
        best = max(scores)
        ties = [index for index, score in enumerate(scores) if score == best]
        alignment.append(min(ties, key=lambda index: abs(index - position)) if best > 0 else None)
    return alignment


def _f1(sentence: Counter[str], original: Counter[str]) -> float:
    total = sentence.total() + original.total()
    return 2 * (sentence & original).total() / total if total else 0.0


def _disorder(alignment: list[int | None]) -> float | None:
    aligned = [(position, original) for position, original in enumerate(alignment) if original is not None]
    if len(aligned) < 2:
        return None
    # (j - i) - (j' - i') is the difference of how far the two sentences moved.
    moves = np.array([position - original for position, original in aligned])
    count = len(moves)
    return float(np.abs(moves[:, None] - moves).sum() / (count * (count - 1)))
