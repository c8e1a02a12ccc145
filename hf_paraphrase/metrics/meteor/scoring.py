from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import InputError
from ..inputs import check_texts
from ..sufficient_statistics import SufficientStatistics
from .java_variant import java_meteor
from .nltk_variant import STAGES, nltk_meteor

__all__ = ["meteor", "meteor_statistics"]

VARIANTS = ("nltk", "1.5")


def meteor(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    variant: str = "nltk",
    stages: Sequence[str] = STAGES,
    tokenize: str = "13a",
    jar: str | os.PathLike | None = None,
    normalize: bool = True,
) -> dict[str, Any]:
    """METEOR: METEOR by nltk, or METEOR 1.5 by its authors' Java program; the result names the variant.

    Words of the prediction are aligned to words of a reference by form, then by stem, then by synonym. The score
    weighs recall more than precision and falls as the matches break into chunks. The code is nltk's
    (https://github.com/nltk/nltk), or the authors' (https://www.cs.cmu.edu/~alavie/METEOR/), which MultEval,
    coco-caption and nlg-eval use; one Java process aligns the whole corpus.

    Args:
        predictions: One text each; an empty text scores 0.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. Of
            several the one with the best score counts.
        variant: `nltk` is METEOR as of 2007, averaged over the sentences, as `evaluate` and most Python code have it.
            `1.5` is the authors' Java program, with paraphrase matches, function words and English parameters, as
            captioning and translation papers have it; its score is that of the corpus, not a mean.
        stages: Of `nltk`: what counts as a match, a beginning of exact, stem, wordnet. Without WordNet the last one
            raises an error, since leaving it out would give another metric.
        tokenize: Of `nltk`: a tokenizer of sacrebleu, `none` for text that is tokenised already.
        jar: Of `1.5`: path to meteor-1.5.jar, with data/paraphrase-en.gz beside it; None for the one in pycocoevalcap.
        normalize: Of `1.5`: whether the program tokenises and lower-cases (its `-norm`) or only lower-cases.

    Returns:
        `score` (0 to 100), `variant`, `signature`.

    Raises:
        InputError: Input that cannot be scored, or something to install is missing; the message says which.
        FileNotFoundError: The jar does not exist.

    Examples:
        >>> metric = load_metric("meteor")
        >>> metric.compute(predictions=["a b c d"], references=["a b c d"], stages=("exact", "stem"))["score"]
        99.21875

    Limits:
        - Implementations differ by up to ten points: name the variant beside the score.
        - The WordNet stage of `nltk` needs WordNet: `python -m nltk.downloader wordnet`. Without it there is an error,
          never another metric under the same name.
        - nltk looks synonyms up by the stems of the words left over (`automobil`), so its WordNet stage finds fewer
          than one would think. Others report its scores, so this is kept.
        - `1.5` needs Java and the extra `meteor`; reading its paraphrase table takes some ten
          seconds and up to 2 GB.

    Source: Lavie and Agarwal 2007 (`nltk`); Denkowski and Lavie 2014 (`1.5`).
    """
    options: dict[str, Any] = {
        "variant": variant,
        "stages": stages,
        "tokenize": tokenize,
        "jar": jar,
        "normalize": normalize,
    }
    statistics = meteor_statistics(predictions, references, **options)["meteor"]
    return {"score": statistics.score, "variant": variant, "signature": statistics.signature}


def meteor_statistics(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    variant: str = "nltk",
    stages: Sequence[str] = STAGES,
    tokenize: str = "13a",
    jar: str | os.PathLike | None = None,
    normalize: bool = True,
) -> dict[str, SufficientStatistics]:
    """The statistics of `meteor`, for `hf_paraphrase.metrics.significance`; arguments as there."""
    predictions, references = check_texts(predictions, references)
    if variant not in VARIANTS:
        raise InputError(f"unknown variant {variant!r}; available: {', '.join(VARIANTS)}")
    if variant == "nltk":
        return {"meteor": nltk_meteor(predictions, references, stages=stages, tokenize=tokenize)}
    return {"meteor": java_meteor(predictions, references, jar=jar, normalize=normalize)}
