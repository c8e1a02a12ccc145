from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..bleu.scoring import bleu
from ..inputs import check_text_lists

__all__ = ["self_bleu"]


def self_bleu(
    predictions: Iterable[Sequence[str]], *, tokenize: str = "13a", lowercase: bool = False
) -> dict[str, Any]:
    """Self-BLEU: how alike the candidates for one source are; lower is more diverse.

    Every candidate is scored against the other candidates for its source as references, as one corpus.

    Args:
        predictions: For each source its candidates, two at least; the lists may differ in length.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case all texts first.

    Returns:
        `self_bleu_2` and `self_bleu_4` (0 to 100), `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the index.

    Source: Zhu et al. 2018, within the candidates of a source as in Kazemnejad et al. 2020, appendix A.2.
    """
    predictions = check_text_lists("predictions", predictions, minimum=2)
    candidates = [candidate for texts in predictions for candidate in texts]
    others = [[*texts[:index], *texts[index + 1 :]] for texts in predictions for index in range(len(texts))]
    result = bleu(candidates, others, tokenize=tokenize, lowercase=lowercase)
    return {"self_bleu_2": result["bleu_2"], "self_bleu_4": result["bleu_4"], "signature": result["signature"]}
