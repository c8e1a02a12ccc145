from __future__ import annotations

from collections.abc import Iterable

from ..inputs import check_sources
from ..sufficient_statistics import Scores, SufficientStatistics
from ..words import check_order, ngrams, sign_words, split_words


def pinc(
    predictions: Iterable[str],
    sources: Iterable[str],
    *,
    max_order: int = 4,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Scores:
    """PINC: the share of a paraphrase's n-grams that its source does not have.

    For n from 1 to 4 the share of different n-grams that are new, averaged over n and over the sentences. Higher is
    newer.

    Args:
        predictions: One paraphrase each. Orders that are longer than the paraphrase are left out of its mean; an empty
            paraphrase scores 0, since it says nothing new.
        sources: The text that each of them paraphrases.
        max_order: The longest n-gram that counts. Each n-gram counts once, however often it occurs.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case both sides first.

    Returns:
        `score` (0 to 100), the mean over the sentences, and `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("pinc").compute(predictions=["a b"], sources=["a c"])["score"]
        75.0

    Limits:
        - It says nothing about meaning: report it with BLEU or METEOR.

    Source: Chen and Dolan 2011.
    """
    predictions, sources = check_sources(predictions, sources)
    check_order(max_order)
    said, before = (split_words(texts, tokenize=tokenize, lowercase=lowercase) for texts in (predictions, sources))
    scores = [_score_pair(*pair, max_order) for pair in zip(said, before, strict=True)]
    signature = f"order:{max_order}|{sign_words(tokenize, lowercase)}"
    found = SufficientStatistics.from_sentence_scores("pinc", scores, signature, scale=100)
    return Scores((found,), {"score": found.score, "signature": signature})


def _score_pair(prediction: list[str], source: list[str], max_order: int) -> float:
    new = []
    for n in range(1, min(max_order, len(prediction)) + 1):
        said = set(ngrams(prediction, n))
        new.append(len(said.difference(ngrams(source, n))) / len(said))
    return sum(new) / len(new) if new else 0.0
