from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
from sacrebleu.metrics import BLEU

from ..inputs import check_texts
from ..sufficient_statistics import Scores, SufficientStatistics, divide
from ..words import check_order, check_tokenize


def bleu(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    max_order: int = 4,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Scores:
    """BLEU: corpus BLEU by sacrebleu, with its signature.

    The geometric mean of the n-gram precisions of a corpus, times a penalty where the predictions are shorter in total
    than the closest references. Each n-gram counts at most as often as in the reference that holds it most often. The
    code is sacrebleu (https://github.com/mjpost/sacrebleu), smoothing `exp`.

    Args:
        predictions: One detokenised text each; an empty text scores nothing and counts in the length.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. Matches
            are clipped by the largest count in any reference, and the reference length is that of the closest one.
        max_order: The longest n-gram that counts.
        tokenize: A tokenizer of sacrebleu; `13a` is that of WMT's mteval-v13a script, `none` is for text that
            is tokenised already.
        lowercase: Whether to lower-case both sides first.

    Returns:
        `score` (0 to 100), `bleu_1` to `bleu_N` (the score with each order up to `max_order` as the longest, as papers
        print BLEU-2 beside BLEU-4; the last is `score` again), `precisions` (in per cent, smoothed where nothing
        matches), `counts` and `totals` for each order, `bp` (brevity penalty), `sys_len` and `ref_len` (in tokens),
        `max_order`, `signature`. `hf_paraphrase.metrics.significance.bootstrap` makes intervals of its `statistics`.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("bleu").compute(predictions=["a b c d e"], references=[["a b c d f", "e"]])["precisions"]
        [100.0, 75.0, 66.66666666666667, 50.0]

    Limits:
        - In paraphrasing, copying the input often has a high BLEU: report that baseline too.
        - More references raise the score. Signatures state number of references, case and tokenizer, not `max_order`.

    Source: Papineni et al. 2002, section 2; Post 2018 for the signature.
    """
    predictions, references = check_texts(predictions, references)
    check_order(max_order)
    check_tokenize(tokenize)
    metric = BLEU(max_ngram_order=max_order, tokenize=tokenize, lowercase=lowercase, force=True)
    # sacrebleu wants the first reference of all rows, then the second, ...; None where a row has no further one.
    streams = list(zip_longest(*references))
    rows = np.array(metric._extract_corpus_statistics(predictions, streams))
    signature = metric.get_signature().format()
    statistics = [
        SufficientStatistics(
            f"bleu_{order}", rows.astype(float), partial(_score_of_sums, order=order, max_order=max_order), signature
        )
        for order in sorted({min(2, max_order), max_order})
    ]
    sys_len, ref_len, *matches = rows.sum(axis=0).tolist()
    counts, totals, lengths = matches[:max_order], matches[max_order:], (sys_len, ref_len)
    scores = {
        order: BLEU.compute_bleu(counts[:order], totals[:order], *lengths, smooth_method="exp", max_ngram_order=order)
        for order in range(1, max_order + 1)
    }
    whole = scores[max_order]
    result = {
        "score": whole.score,
        **{f"bleu_{order}": score.score for order, score in scores.items()},
        **{name: getattr(whole, name) for name in ("precisions", "counts", "totals", "bp", "sys_len", "ref_len")},
        "max_order": max_order,
        "signature": signature,
    }
    return Scores(statistics, result)


def _score_of_sums(sums: np.ndarray, *, order: int, max_order: int) -> np.ndarray:
    """sacrebleu's `compute_bleu`, `exp` smoothing, from sums `(..., 2 + 2 * max_order)`: lengths, matches, totals."""
    sys_len, ref_len = sums[..., 0], sums[..., 1]
    correct, total = sums[..., 2 : 2 + order], sums[..., 2 + max_order : 2 + max_order + order]
    smoothed = np.where(correct == 0, 0.5 ** np.cumsum(correct == 0, axis=-1), correct)
    scored = correct.any(axis=-1) & (total > 0).all(axis=-1)
    log_precision = np.log(divide(smoothed, total), out=np.zeros(total.shape), where=scored[..., None])
    log_penalty = np.minimum(0, 1 - divide(ref_len, sys_len))
    return np.where(scored, 100 * np.exp(log_penalty + log_precision.mean(axis=-1)), 0.0)
