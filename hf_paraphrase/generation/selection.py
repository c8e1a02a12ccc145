from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, cast

import numpy as np
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerBase, TextClassificationPipeline

from ..checkpoints.pretrained import load_pipeline
from ..common.errors import InputError
from ..models.text.candidate_selection import (
    select_by_difference,
    select_by_jaccard,
    select_by_mbr,
    select_by_score,
)
from ..models.text.encoded_inputs import source_limit
from ..retrieval.encoders import DEFAULT_ENCODER, SentenceEncoder, load_encoder

RULES = ("different", "jaccard", "mbr", "score", "embedding", "matcher")
# How models that tell more than two relations of sentences apart name the one that we want.
WANTED_LABELS = ("paraphrase", "duplicate", "equivalent", "entailment")


def select_candidates(
    sources: Sequence[str],
    candidates: Sequence[Sequence[str]],
    by: str = "jaccard",
    *,
    scores: Sequence[Sequence[float]] | None = None,
    encoder: str | os.PathLike | SentenceEncoder | Callable[[list[str]], Any] = DEFAULT_ENCODER,
    matcher: str | os.PathLike | TextClassificationPipeline | None = None,
    trust_remote_code: bool = False,
) -> list[int]:
    """Choose one of several paraphrases of each text.

    Args:
        sources: The texts.
        candidates: For each text its paraphrases, by any model.
        by: "different" chooses the first with other words than the text, "jaccard" the one that shares most of its
            tokens with the text (Kazemnejad et al. 2020), "mbr" that with which the others agree most (minimum Bayes
            risk), "score" that with the highest of `scores`, "embedding" that whose sentence vector is nearest to the
            text's, and "matcher" that of which `matcher` is most sure that it means the same.
        scores: For each text a number for each paraphrase, such as the model's log-probability.
        encoder: What makes the vectors, as `ParaphraseRetriever.from_pairs` takes it.
        matcher: A classifier or scorer of sentence pairs: a folder, a Hub repository, or a text-classification
            pipeline. With two labels the last one counts, since 1 means paraphrase in most corpora.
        trust_remote_code: Let their own code run.

    Returns:
        For each text the place of the chosen paraphrase, from 0; of equally good ones the first.

    Raises:
        InputError: A text without paraphrases, or an argument that is wrong or missing; the message says which.
    """
    if by not in RULES:
        raise InputError(f"`by` must be one of {', '.join(RULES)}, not {by!r}")
    _check_candidates(sources, candidates)
    if by == "different":
        return select_by_difference(sources, candidates)
    if by == "jaccard":
        return select_by_jaccard(sources, candidates)
    if by == "mbr":
        return select_by_mbr(candidates)
    if by == "embedding":
        scores = score_by_embedding(sources, candidates, load_encoder(encoder, trust_remote_code=trust_remote_code))
    elif by == "matcher":
        scores = score_by_matcher(sources, candidates, load_matching_pipeline(matcher, trust_remote_code))
    elif scores is None:
        raise InputError("`by='score'` needs `scores=`, a number for each candidate")
    _check_scores(scores, candidates)
    return select_by_score(scores)


def score_by_embedding(
    sources: Sequence[str], candidates: Sequence[Sequence[str]], encoder: SentenceEncoder
) -> list[list[float]]:
    """Cosine of each candidate's sentence vector with its source's."""
    texts = list(dict.fromkeys(chain(sources, *candidates)))
    if not texts:
        return []
    vectors = dict(zip(texts, encoder(texts), strict=True))
    return [
        [float(np.dot(vectors[source], vectors[text])) for text in group]
        for source, group in zip(sources, candidates, strict=True)
    ]


def score_by_matcher(
    sources: Sequence[str], candidates: Sequence[Sequence[str]], matcher: TextClassificationPipeline
) -> list[list[float]]:
    """How sure a classifier is that each candidate means what its source does, or the score that it gives the pair."""
    label = wanted_label(matcher)
    pairs = [(source, text) for source, group in zip(sources, candidates, strict=True) for text in group]
    # Not all models take a pair with an empty text, which is nobody's paraphrase.
    asked = [place for place, pair in enumerate(pairs) if all(text.strip() for text in pair)]
    values = [-math.inf] * len(pairs)
    if asked:
        inputs = [{"text": pairs[place][0], "text_pair": pairs[place][1]} for place in asked]
        # Scores of one number stay as they are: a sigmoid would make the highest of them equal.
        function = "none" if matcher.model.config.num_labels == 1 else "softmax"
        limit = source_limit(matcher.model, cast(PreTrainedTokenizerBase, matcher.tokenizer))
        results: Any = matcher(inputs, top_k=None, function_to_apply=function, truncation=True, max_length=limit)
        for place, entries in zip(asked, results, strict=True):
            values[place] = next(entry["score"] for entry in entries if entry["label"] == label)
    ends = accumulate(map(len, candidates), initial=0)
    return [values[start:stop] for start, stop in pairwise(ends)]


def load_matching_pipeline(
    matcher: str | os.PathLike | TextClassificationPipeline | None,
    trust_remote_code: bool = False,
) -> TextClassificationPipeline:
    """Load what `matcher` names, with its own code where that is trusted; a pipeline is used as it is.

    Raises:
        InputError: Nothing is named, or nothing that can be loaded.
    """
    if matcher is None:
        raise InputError("to choose by 'matcher' needs `matcher`, a model that classifies or scores sentence pairs")
    if isinstance(matcher, TextClassificationPipeline):
        return matcher
    try:
        found = load_pipeline(
            "text-classification", AutoModelForSequenceClassification, matcher, trust_remote_code, batch_size=64
        )
    except (OSError, ValueError) as error:
        raise InputError(f"`matcher`: {matcher} is not a loadable sentence-pair model: {error}") from error
    return cast(TextClassificationPipeline, found)


def wanted_label(matcher: TextClassificationPipeline) -> str:
    """The label by which a classifier says that two sentences mean the same, or the one label of a scorer.

    Raises:
        InputError: None of more than two labels is named so.
    """
    config = matcher.model.config
    labels = [cast(dict[int, str], config.id2label)[place] for place in range(cast(int, config.num_labels))]
    named = [label for label in labels if label.lower() in WANTED_LABELS]
    if named:
        return named[0]
    if len(labels) <= 2:
        return labels[-1]
    raise InputError(
        f"`matcher` tells {', '.join(labels)} apart, none of which is named {', '.join(WANTED_LABELS[:-1])} or "
        f"{WANTED_LABELS[-1]}: name the label of a paraphrase so in its config's `id2label`"
    )


def _check_candidates(sources: Sequence[str], candidates: Sequence[Sequence[str]]) -> None:
    if len(candidates) != len(sources):
        raise InputError(f"`candidates` is for {len(candidates)} texts, but `sources` has {len(sources)}")
    for place, group in enumerate(candidates):
        if isinstance(group, str) or not len(group):
            raise InputError(f"`candidates`, text {place}: this must be a list of texts, not {group!r:.100}")


def _check_scores(scores: Sequence[Sequence[float]], candidates: Sequence[Sequence[str]]) -> None:
    if len(scores) != len(candidates):
        raise InputError(f"`scores` is for {len(scores)} texts, but there are {len(candidates)}")
    for place, (values, group) in enumerate(zip(scores, candidates, strict=True)):
        if len(values) != len(group):
            raise InputError(f"`scores`, text {place}: there are {len(values)} for {len(group)} candidates")
        if np.isnan(np.asarray(values, dtype=float)).any():
            raise InputError(f"`scores`, text {place}: not all are numbers: {list(values)!r:.100}")
