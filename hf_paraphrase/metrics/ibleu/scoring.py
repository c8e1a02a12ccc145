from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...common.errors import InputError
from ..bleu.scoring import bleu
from ..inputs import check_sources, check_texts
from ..sufficient_statistics import Scores, SufficientStatistics


def ibleu(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    sources: Iterable[str],
    *,
    alpha: float = 0.8,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Scores:
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
    predictions, references, sources = check_paraphrases(predictions, references, sources)
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha}")
    against_references, against_source = (
        bleu(predictions, texts, tokenize=tokenize, lowercase=lowercase).statistics["bleu_4"]
        for texts in (references, sources)
    )
    half = against_references.rows.shape[1]

    def score_of_sums(sums: np.ndarray) -> np.ndarray:
        first, second = against_references.score_of_sums, against_source.score_of_sums
        return alpha * first(sums[..., :half]) - (1 - alpha) * second(sums[..., half:])

    rows = np.hstack([against_references.rows, against_source.rows])
    signature = f"alpha:{alpha:g}|{against_references.signature}"
    of_both = SufficientStatistics("ibleu", rows, score_of_sums, signature)
    parts = {"bleu": against_references.score, "source_bleu": against_source.score}
    return Scores((of_both,), {"score": of_both.score, **parts, "alpha": alpha, "signature": signature})


def check_paraphrases(
    predictions: Iterable[str], references: Iterable[str | Sequence[str]], sources: Iterable[str]
) -> tuple[list[str], list[list[str]], list[str]]:
    """Check the inputs of `ibleu`, and make a list of each entry of the references."""
    predictions, references = check_texts(predictions, references)
    return predictions, references, check_sources(predictions, sources)[1]
