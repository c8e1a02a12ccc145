"""Adequacy: how well a candidate preserves the meaning of its source, from 0 to 1, with the limits of each measure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol, cast

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..errors import InputError
from ..models.layers.portable import can
from ..models.search.embedding_paraphraser import EmbeddingParaphraser
from ..models.text.candidate_selection import jaccard_similarity, mean_bleu
from ..pretrained import load_config
from ..retrieval.encoders import DEFAULT_ENCODER, SentenceEncoder, load_encoder
from .loading import load_paraphraser
from .open_judge import OpenJudge, find_open_judge
from .selection import load_matching_pipeline, score_by_embedding, score_by_matcher, wanted_label
from .writers import Judged, ModelWriter

ADEQUACIES = ("open", "round_trip", "embedding", "matcher", "jaccard", "mbr")


class Adequacy(Protocol):
    """What judges candidates."""

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        """Return a number from 0 to 1 for each."""
        ...


def load_adequacy(
    adequacy: str | Callable[[list[str], list[str]], Sequence[float]],
    writer: ModelWriter,
    *,
    encoder: str | os.PathLike | SentenceEncoder | Callable[[list[str]], Any] | None = None,
    matcher: str | os.PathLike | TextClassificationPipeline | None = None,
    trust_remote_code: bool = False,
) -> Adequacy:
    """Make a judge.

    Args:
        adequacy: "open" (`OpenJudge`), "round_trip" (`RoundTrip`), "embedding" (`EmbeddingAdequacy`), "matcher"
            (`MatcherAdequacy`), "jaccard" (likeness of words), "mbr" (agreement with the other candidates), or a
            function from sources and candidates to numbers from 0 to 1.
        encoder: For "embedding": the folder or Hub repository of a model of sentence-transformers, of any other that
            `AutoModel` loads, or of one here that embeds sentences; or a function. None for the paraphrasing model
            where it embeds sentences, and all-MiniLM-L6-v2 otherwise.
        matcher: For "matcher": the folder or Hub repository of a classifier of sentence pairs, or a pipeline.

    Raises:
        InputError: Unknown measure, an argument of another measure, or a model that cannot be loaded.
    """
    check_adequacy(adequacy, encoder, matcher)
    if callable(adequacy):
        return CallableAdequacy(adequacy)
    if adequacy == "open":
        judge = find_open_judge(writer)
        if judge is None:
            raise InputError("`adequacy='open'` needs a calibrated model; `scripts/judge.py fit` calibrates one")
        return judge
    if adequacy == "round_trip":
        return RoundTrip(writer if writer.scores_texts else ModelWriter(*load_paraphraser()))
    if adequacy in RULES:
        return RULES[adequacy]
    if adequacy == "matcher":
        return MatcherAdequacy(load_matching_pipeline(matcher, trust_remote_code))
    model = writer.model
    if encoder is None and model is not None and can(model.config, "embeds_sentences"):
        return EmbeddingAdequacy(_encoder_of(model, writer.tokenizer))
    if isinstance(encoder, str | os.PathLike) and _names_sentence_model(encoder, trust_remote_code):
        return EmbeddingAdequacy(_encoder_of(*load_paraphraser(encoder, writer.device, trust_remote_code)))
    encoder = DEFAULT_ENCODER if encoder is None else encoder
    return EmbeddingAdequacy(load_encoder(encoder, trust_remote_code=trust_remote_code))


def judges_alone(judge: Adequacy) -> bool:
    """Whether a judge's number for a candidate is that for any others beside it, and worth saving.

    Of the caller's own function nothing is known.
    """
    return isinstance(judge, RoundTrip | OpenJudge | EmbeddingAdequacy | MatcherAdequacy)


def check_adequacy(adequacy: Any, encoder: Any, matcher: Any) -> None:
    """Raise InputError for an unknown measure, or an argument of another one."""
    if not callable(adequacy) and adequacy not in ADEQUACIES:
        raise InputError(f"`adequacy` must be one of {', '.join(ADEQUACIES)}, or a function, not {adequacy!r}")
    for name, value, owner in (("encoder", encoder, "embedding"), ("matcher", matcher, "matcher")):
        if value is not None and adequacy != owner:
            raise InputError(f"`{name}` is asked with `adequacy={owner!r}` alone")


def _names_sentence_model(name: str | os.PathLike, trust_remote_code: bool) -> bool:
    try:
        return can(load_config(name, trust_remote_code), "embeds_sentences")
    except (OSError, ValueError):  # which loading it says better
        return False


def _encoder_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> SentenceEncoder:
    own = cast(EmbeddingParaphraser, model)
    return SentenceEncoder(lambda texts: own.sentence_embeddings(texts, tokenizer).cpu().numpy())


class RoundTrip:
    """Whether the model that wrote a candidate can write the source from it.

    The geometric mean of the probabilities of the source's tokens given the candidate: exp of the mean
    log-probability. A model that edits by a retrieved pair is given the pair the other way round. It measures what of
    the source can still be told from the candidate, as far as the model knows words: words outside its vocabulary are
    all alike. It ignores additions and is not calibrated: close candidates score higher than free ones with the same
    meaning, and scores of different models are not comparable.

    Args:
        writer: Runs the model. For a server, which scores no texts, it is the model that comes with the package.
    """

    def __init__(self, writer: ModelWriter):
        self.writer = writer

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        sources, candidates = [one.source for one in judged], [one.candidate for one in judged]
        pairs = [one.pair[::-1] for one in judged if one.pair is not None] or None
        return list(map(math.exp, self.writer.mean_log_probs(candidates, sources, batch_size, pairs)))


def _jaccard(judged: Sequence[Judged], batch_size: int) -> list[float]:
    return [jaccard_similarity(one.source, one.candidate) for one in judged]


def _agreement(judged: Sequence[Judged], batch_size: int) -> list[float]:
    """How much the candidates of a text agree with each: mean BLEU, as `select_by_mbr` has it."""
    groups = (list(group) for _, group in groupby(judged, key=lambda one: one.source))
    return [score for group in groups for score in mean_bleu([one.candidate for one in group])]


RULES: dict[str, Adequacy] = {"jaccard": _jaccard, "mbr": _agreement}


class EmbeddingAdequacy:
    """The cosine of the sentence vectors of source and candidate; 0 where it is negative.

    It measures similarity of topic and meaning, as learnt by the encoder. It hardly notices negation, swapped roles or
    changed numbers.
    """

    def __init__(self, encoder: SentenceEncoder):
        self.encoder = encoder

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        cosines = score_by_embedding(*_columns(judged), self.encoder)
        return [min(max(cosine, 0.0), 1.0) for (cosine,) in cosines]


class MatcherAdequacy:
    """How sure a classifier of sentence pairs is that source and candidate mean the same.

    Of a classifier of paraphrases, the probability of that label; of one of inference (its label is named entailment),
    the smaller of the probabilities that the source entails the candidate and the candidate the source; of a scorer,
    the logistic function of the score. It measures what the classifier was trained for, on similar sentences. It does
    not see style, and the probabilities are as calibrated as the classifier is.
    """

    def __init__(self, matcher: TextClassificationPipeline):
        self.matcher = matcher
        self.both_ways = wanted_label(matcher).lower() == "entailment"

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        scores = self._one_way(judged)
        if self.both_ways:
            back = self._one_way([Judged(one.candidate, one.source) for one in judged])
            scores = [min(pair) for pair in zip(scores, back, strict=True)]
        if self.matcher.model.config.num_labels == 1:
            scores = [(1 + math.tanh(score / 2)) / 2 for score in scores]
        return scores

    def _one_way(self, judged: Sequence[Judged]) -> list[float]:
        return [score for (score,) in score_by_matcher(*_columns(judged), self.matcher)]


class CallableAdequacy:
    """The scores of the caller's function, from sources and as many candidates to numbers from 0 to 1."""

    def __init__(self, function: Callable[[list[str], list[str]], Sequence[float]]):
        self.function = function

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        sources, candidates = [one.source for one in judged], [one.candidate for one in judged]
        scores = np.asarray(self.function(sources, candidates), dtype=float)
        if scores.shape != (len(judged),) or not ((scores >= 0) & (scores <= 1)).all():
            raise InputError(
                f"`adequacy`: the function must return a number from 0 to 1 for each of {len(judged)} candidates, not "
                f"{np.array2string(scores, threshold=8)} of shape {scores.shape}"
            )
        return scores.tolist()


def _columns(judged: Sequence[Judged]) -> tuple[list[str], list[list[str]]]:
    return [one.source for one in judged], [[one.candidate] for one in judged]
