from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ..bleu.scoring import bleu_statistics
from ..inputs import check_sources, check_texts
from ..sufficient_statistics import SufficientStatistics

__all__ = ["check_paraphrases", "ibleu", "ibleu_statistics"]


def ibleu(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    sources: Iterable[str],
    *,
    alpha: float = 0.8,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Any]:
    """iBLEU: BLEU against the references, less BLEU against the source.

    A copy of the source, which often has a high BLEU, loses. Both are of the corpus, by sacrebleu
    (https://github.com/mjpost/sacrebleu).

    Args:
        predictions: One paraphrase each; an empty one is scored like any other.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length.
        sources: The text that each prediction paraphrases.
        alpha: Weight of the references; the source has `1 - alpha`. The paper advises 0.7 to 0.9.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case all texts first.

    Returns:
        `score` (`alpha * bleu - (1 - alpha) * source_bleu`, at most 100, below 0 for copies that no
        reference resembles), its parts `bleu` and `source_bleu`, `alpha`, `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> metric = load_metric("ibleu")
        >>> scores = metric.compute(predictions=["a b c d"], references=["a b c d"], sources=["e f g h"])
        >>> round(scores["score"], 2)
        80.0

    Limits:
        - Papers choose `alpha` between 0.7 and 0.9; scores are not comparable across values.

    Source: Sun and Zhou 2012; here at corpus level.
    """
    options: dict[str, Any] = {"alpha": alpha, "tokenize": tokenize, "lowercase": lowercase}
    statistics = ibleu_statistics(predictions, references, sources, **options)
    return {
        "score": statistics["ibleu"].score,
        "bleu": statistics["bleu"].score,
        "source_bleu": statistics["source_bleu"].score,
        "alpha": alpha,
        "signature": statistics["ibleu"].signature,
    }


def ibleu_statistics(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    sources: Iterable[str],
    *,
    alpha: float = 0.8,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, SufficientStatistics]:
    """The statistics of the three scores, for `hf_paraphrase.metrics.significance`; arguments as there."""
    predictions, references, sources = check_paraphrases(predictions, references, sources)
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha}")
    options: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase}
    against_references = bleu_statistics(predictions, references, **options)["bleu_4"]
    against_source = bleu_statistics(predictions, sources, **options)["bleu_4"]
    half = against_references.rows.shape[1]

    def score_of_sums(sums: np.ndarray) -> np.ndarray:
        first, second = against_references.score_of_sums, against_source.score_of_sums
        return alpha * first(sums[..., :half]) - (1 - alpha) * second(sums[..., half:])

    rows = np.hstack([against_references.rows, against_source.rows])
    signature = f"alpha:{alpha:g}|{against_references.signature}"
    ibleu_of_both = SufficientStatistics("ibleu", rows, score_of_sums, signature)
    return {"ibleu": ibleu_of_both, "bleu": against_references, "source_bleu": against_source}


def check_paraphrases(
    predictions: Iterable[str], references: Iterable[str | Sequence[str]], sources: Iterable[str]
) -> tuple[list[str], list[list[str]], list[str]]:
    """Check the inputs of `ibleu`, and make a list of each entry of the references."""
    predictions, references = check_texts(predictions, references)
    return predictions, references, check_sources(predictions, sources)[1]
