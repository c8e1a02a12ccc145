from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..inputs import check_text_list
from ..words import check_order, ngrams, sign_words, split_words


def distinct_n(
    predictions: Iterable[str], *, max_order: int = 2, tokenize: str = "13a", lowercase: bool = False
) -> dict[str, Any]:
    """Distinct-n: the number of different n-grams of all texts together, divided by the number of their n-grams.

    Higher is more diverse.

    Args:
        predictions: One text each; an empty text adds no n-grams.
        max_order: The longest n-gram.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case the texts first.

    Returns:
        `distinct_1` to `distinct_N` (0 to 1; 0 where there are no n-grams), `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the index.

    Examples:
        >>> load_metric("distinct_n").compute(predictions=["a b", "a b"])["distinct_1"]
        0.5

    Limits:
        - It falls as texts are added: compare equal numbers of texts of similar length.

    Source: Li et al. 2016 (A diversity-promoting objective function).
    """
    predictions = check_text_list("predictions", predictions)
    check_order(max_order)
    texts = split_words(predictions, tokenize=tokenize, lowercase=lowercase)
    result: dict[str, Any] = {}
    for n in range(1, max_order + 1):
        total = sum(max(0, len(words) - n + 1) for words in texts)
        different = len({ngram for words in texts for ngram in ngrams(words, n)})
        result[f"distinct_{n}"] = different / total if total else 0.0
    return {**result, "signature": f"texts:{len(texts)}|{sign_words(tokenize, lowercase)}"}
