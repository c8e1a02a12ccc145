from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np
from sacrebleu.metrics import TER

from ..inputs import check_texts
from ..sufficient_statistics import Scores, SufficientStatistics, divide


def ter(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Scores:
    """TER: corpus translation edit rate by sacrebleu, with its signature.

    How many insertions, deletions, substitutions and shifts of runs of words turn the predictions into their closest
    references, divided by the mean length of the references. Lower is better. The code is sacrebleu
    (https://github.com/mjpost/sacrebleu), which follows tercom.

    Args:
        predictions: One text each; an empty text needs as many edits as its shortest reference has words.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. The
            edits are those of the reference that needs fewest, the length is the mean over all references.
        normalized: Whether to tokenise punctuation first (sacrebleu's, after tercom).
        no_punct: Whether to remove punctuation first.
        asian_support: Whether the two above also know CJK characters.
        case_sensitive: Whether case counts; by default it does not.

    Returns:
        `score` (in per cent; lower is better, and it can exceed 100), `num_edits`, `ref_length` (in tokens),
        `signature`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("ter").compute(predictions=["b c d a"], references=["a b c d"])["score"]
        25.0

    Limits:
        - Finding the fewest edits with shifts is intractable; like tercom, this is a greedy search, so TER is an upper
          bound.
        - With several references the length is their mean, while the edits are those of the closest one.

    Source: Snover et al. 2006; sacrebleu's TER, itself checked against tercom.
    """
    predictions, references = check_texts(predictions, references)
    metric = TER(normalized=normalized, no_punct=no_punct, asian_support=asian_support, case_sensitive=case_sensitive)
    rows = np.array(metric._extract_corpus_statistics(predictions, list(zip_longest(*references))), dtype=float)
    signature = metric.get_signature().format()
    found = SufficientStatistics("ter", rows, _score_of_sums, signature, higher_is_better=False)
    edits, length = rows.sum(axis=0)
    counts = {"num_edits": int(edits), "ref_length": float(length)}
    return Scores((found,), {"score": found.score, **counts, "signature": signature})


def _score_of_sums(sums: np.ndarray) -> np.ndarray:
    edits, length = sums[..., 0], sums[..., 1]
    # Against empty references any edit at all is 100%.
    return 100 * np.where(length > 0, divide(edits, length), edits > 0)
