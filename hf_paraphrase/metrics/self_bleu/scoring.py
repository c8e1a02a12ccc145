from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from ..bleu.scoring import bleu
from ..inputs import check_text_lists
from ..sufficient_statistics import Scores


def self_bleu(predictions: Iterable[Sequence[str]], *, tokenize: str = "13a", lowercase: bool = False) -> Scores:
    """Self-BLEU: how alike the candidates for one source are; lower is more diverse.

    Every candidate is scored with BLEU against each other candidate for its source, one reference at a time. The
    counts of a source are the mean over its pairs, and the score is that of all sources as one corpus. So it does not
    depend on how many candidates there are; against all others at once it would grow with every reference alone. The
    code is sacrebleu's (https://github.com/mjpost/sacrebleu).

    Args:
        predictions: For each source its candidates, two at least; the lists may differ in length.
        tokenize: A tokenizer of sacrebleu; `none` for text that is tokenised already.
        lowercase: Whether to lower-case all texts first.

    Returns:
        `self_bleu_2` and `self_bleu_4` (0 to 100, with pairs and with runs of four words as the longest), `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the index.

    Examples:
        >>> scores = load_metric("self_bleu").compute(predictions=[["a b c d", "a b c d"]])
        >>> round(scores["self_bleu_4"], 2)
        100.0

    Limits:
        - Papers that score a candidate against all others at once report another figure: that one grows with the
          number of candidates alone (exchangeable ones gave 72.7, 83.3 and 85.4 for two, three and five), while the
          mean over pairs stays.
        - Candidates of a beam are ranked: the fifth is less like the first than the second is. A model that writes
          five is then more diverse than the same model's first two, and rightly so.
        - Nonsense is diverse.

    Source: Zhu et al. 2018, who take all others as references at once; within the candidates of a source as in
    Kazemnejad et al. 2020, appendix A.2.
    """
    predictions = check_text_lists("predictions", predictions, minimum=2)
    pairs = [pair for texts in predictions for pair in permutations(texts, 2)]
    sizes = np.array([len(texts) * (len(texts) - 1) for texts in predictions])
    # Relative to the source with the most pairs: where all have as many, this is BLEU of the pairs as they are.
    weights = np.repeat(sizes.max() / sizes, sizes)[:, None]
    starts = np.cumsum(sizes) - sizes
    statistics = [
        replace(
            one,
            name=f"self_{one.name}",
            rows=np.add.reduceat(weights * one.rows, starts),
            signature=f"mean-over-pairs|{one.signature}",
            higher_is_better=False,
        )
        for one in bleu(*zip(*pairs, strict=True), tokenize=tokenize, lowercase=lowercase).statistics.values()
    ]
    return Scores(statistics, {one.name: one.score for one in statistics} | {"signature": statistics[0].signature})
