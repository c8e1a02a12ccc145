from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest

import numpy as np
from sacrebleu.metrics import BLEU

from ...errors import InputError
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
    n_bootstrap: int | None = None,
    seed: int = 12345,
) -> Scores:
    """BLEU: corpus BLEU by sacrebleu, with its signature and, on request, a bootstrap confidence interval.

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
        n_bootstrap: How many times to resample the corpus, at least 2, for the confidence interval; None for none.
        seed: Seed of the resampling; the default is sacrebleu's own.

    Returns:
        `score` (0 to 100), `bleu_1` to `bleu_N` (the score with each order up to `max_order` as the longest, as papers
        print BLEU-2 beside BLEU-4; the last is `score` again), `precisions` (in per cent, smoothed where nothing
        matches), `counts` and `totals` for each order, `bp` (brevity penalty), `sys_len` and `ref_len` (in tokens),
        `max_order`, `signature`; with `n_bootstrap` also `bootstrap_mean` and `confidence_interval`, the bounds around
        that mean.

    Raises:
        InputError: Input that cannot be scored; the message names the argument and the index.

    Examples:
        >>> load_metric("bleu").compute(predictions=["a b c d e"], references=[["a b c d f", "e"]])["precisions"]
        [100.0, 75.0, 66.66666666666667, 50.0]

    Limits:
        - In paraphrasing, copying the input often has a high BLEU: report that baseline too.
        - More references raise the score. Signatures state number of references, case and tokenizer, not `max_order`.
        - The interval covers the choice of test sentences, not the training seed.
        - Resampling holds `n_bootstrap` × rows × (2 + 2 · `max_order`) numbers of four bytes: 0.8 GB for 1,000 samples
          of 20,000 rows.

    Source: Papineni et al. 2002, section 2; Post 2018 for the signature; Koehn 2004 for the resampling.
    """
    predictions, references = check_texts(predictions, references)
    check_order(max_order)
    check_tokenize(tokenize)
    if n_bootstrap is not None and n_bootstrap < 2:
        raise InputError(f"n_bootstrap must be at least 2, or None for no interval; got {n_bootstrap}")
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
    interval = {}
    if n_bootstrap:
        with _sacrebleu_seed(seed):
            resampled = metric.corpus_score(predictions, streams, n_bootstrap=n_bootstrap)
        signature = metric.get_signature().format()
        summary = json.loads(resampled.format(width=6, signature=signature, is_json=True))
        # sacrebleu leaves both out where no sample scored anything.
        mean, half_width = summary.get("confidence_mean", 0.0), summary.get("confidence_var", 0.0)
        interval = {"bootstrap_mean": mean, "confidence_interval": [mean - half_width, mean + half_width]}
    whole = scores[max_order]
    result = {
        "score": whole.score,
        **{f"bleu_{order}": score.score for order, score in scores.items()},
        **{name: getattr(whole, name) for name in ("precisions", "counts", "totals", "bp", "sys_len", "ref_len")},
        "max_order": max_order,
        "signature": signature,
    }
    return Scores(statistics, result | interval)


def _score_of_sums(sums: np.ndarray, *, order: int, max_order: int) -> np.ndarray:
    """sacrebleu's `compute_bleu`, `exp` smoothing, from sums `(..., 2 + 2 * max_order)`: lengths, matches, totals."""
    sys_len, ref_len = sums[..., 0], sums[..., 1]
    correct, total = sums[..., 2 : 2 + order], sums[..., 2 + max_order : 2 + max_order + order]
    smoothed = np.where(correct == 0, 0.5 ** np.cumsum(correct == 0, axis=-1), correct)
    scored = correct.any(axis=-1) & (total > 0).all(axis=-1)
    log_precision = np.log(divide(smoothed, total), out=np.zeros(total.shape), where=scored[..., None])
    log_penalty = np.minimum(0, 1 - divide(ref_len, sys_len))
    return np.where(scored, 100 * np.exp(log_penalty + log_precision.mean(axis=-1)), 0.0)


@contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacrebleu takes the seed of its resampling from the environment alone."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before
