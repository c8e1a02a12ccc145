"""Judges with the limits of each: of candidates' adequacy (is the meaning preserved?) and fluency, from 0 to 1, and of
texts that a model should not paraphrase: in another script or language, code, lists and single words."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..checkpoints.pretrained import load_config, load_model, load_tokenizer
from ..common.errors import InputError
from ..datasets.pair_filter import ComparedSentence
from ..models.layers.layer_weights import input_device
from ..models.layers.portable import can
from ..models.text.candidate_selection import jaccard_similarity, mean_bleu
from ..models.text.encoded_inputs import source_limit
from ..retrieval.encoders import DEFAULT_ENCODER, SentenceEncoder, load_encoder
from .engine import run_by_length
from .loading import load_paraphraser
from .paraphrase_choice import normal_form
from .selection import load_matching_pipeline, score_by_embedding, score_by_matcher, wanted_label
from .writers import Judged, ModelWriter

ADEQUACIES = ("open", "round_trip", "embedding", "matcher", "jaccard", "mbr")
FEATURES = ("mean", "worst", "numbers", "names", "persons", "polarity")
# Separators of list entries, and ends of sentences.
SEPARATOR = re.compile(r"\s*(?:[,;|/•*\n]|(?:^|\s)-\s|(?:^|\s)(?:\d+|[a-z])[.)]\s)\s*")
SENTENCE_END = re.compile(r"[.!?…][\"”’')]*\s*$")
# Most English sentences have some of these.
COMMON = """
    a an the and or but of to in on at for with from by into about as than is are was were be been has have had
    do does did not no it its this that these there what which who how why when where i you he she we they my
    your his her our their me him us them can could will would should must if because so all more some
"""
COMMON_WORDS, WORD = frozenset(COMMON.split()), re.compile(r"([^\W_]+)(?:['’][^\W_]+)?")
REFUSAL = "the model does not paraphrase {}"
LETTER, LATIN = re.compile(r"[^\W\d_]"), re.compile(r"[A-Za-z\u00aa-\u024f\u1e00-\u1eff]")


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
    if not callable(adequacy) and adequacy not in ADEQUACIES:
        raise InputError(f"`adequacy` must be one of {', '.join(ADEQUACIES)}, or a function, not {adequacy!r}")
    for name, value, owner in (("encoder", encoder, "embedding"), ("matcher", matcher, "matcher")):
        if value is not None and adequacy != owner:
            raise InputError(f"`{name}` is asked with `adequacy={owner!r}` alone")
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


def _names_sentence_model(name: str | os.PathLike, trust_remote_code: bool) -> bool:
    try:
        return can(load_config(name, trust_remote_code), "embeds_sentences")
    except (OSError, ValueError):  # which loading it says better
        return False


def _encoder_of(model: Any, tokenizer: PreTrainedTokenizerBase) -> SentenceEncoder:
    return SentenceEncoder(lambda texts: model.sentence_embeddings(texts, tokenizer).cpu().numpy())


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
        sources, candidates = _columns(judged)
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
        sources, candidates = _columns(judged)
        cosines = score_by_embedding(sources, [[one] for one in candidates], self.encoder)
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
        sources, candidates = _columns(judged)
        scores = self._one_way(sources, candidates)
        if self.both_ways:
            back = self._one_way(candidates, sources)
            scores = [min(pair) for pair in zip(scores, back, strict=True)]
        if self.matcher.model.config.num_labels == 1:
            scores = [(1 + math.tanh(score / 2)) / 2 for score in scores]
        return scores

    def _one_way(self, sources: list[str], candidates: list[str]) -> list[float]:
        return [score for (score,) in score_by_matcher(sources, [[one] for one in candidates], self.matcher)]


class CallableAdequacy:
    """The scores of the caller's function, from sources and as many candidates to numbers from 0 to 1."""

    def __init__(self, function: Callable[[list[str], list[str]], Sequence[float]]):
        self.function = function

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        scores = np.asarray(self.function(*_columns(judged)), dtype=float)
        if scores.shape != (len(judged),) or not ((scores >= 0) & (scores <= 1)).all():
            raise InputError(
                f"`adequacy`: the function must return a number from 0 to 1 for each of {len(judged)} candidates, not "
                f"{np.array2string(scores, threshold=8)} of shape {scores.shape}"
            )
        return scores.tolist()


def _columns(judged: Sequence[Judged]) -> tuple[list[str], list[str]]:
    return [one.source for one in judged], [one.candidate for one in judged]


def pair_features(
    writer: ModelWriter, sources: Sequence[str], candidates: Sequence[str], batch_size: int
) -> np.ndarray:
    """Compute the judge's features for pairs of texts with words, `(pairs, len(FEATURES))`.

    The first two are averages over both directions, source to candidate and back, of the mean and of the least
    log-probability of a token. The others are 1 if the texts differ in numbers, names, persons (I, you, …) or
    negation, else 0.
    """
    if not sources:
        return np.zeros((0, len(FEATURES)))
    forward = writer.token_log_probs(sources, candidates, batch_size)
    backward = writer.token_log_probs(candidates, sources, batch_size)
    compared = {text: ComparedSentence(text) for text in {*sources, *candidates}}
    rows = []
    for there, back, source, candidate in zip(forward, backward, sources, candidates, strict=True):
        mean, worst = (np.mean([of(there), of(back)]) for of in (np.mean, np.min))
        one, other = compared[source], compared[candidate]
        # The other text may start with the name, or write it without the capital.
        names_differ = not (one.names <= other.bare_words and other.names <= one.bare_words)
        numbers_differ, persons_differ = one.numbers != other.numbers, one.persons != other.persons
        rows.append([mean, worst, numbers_differ, names_differ, persons_differ, one.polarity != other.polarity])
    return np.array(rows, dtype=float)


class OpenJudge:
    """Whether a paraphrasing model can write each of two texts from the other (Thompson and Post 2020).

    The model's mean log-probability of candidate given source and of source given candidate, and the least of a token,
    are joined by a calibrated logistic regression with what a language model overlooks: numbers, names, persons and
    negation that differ. Scores are near 1 for the same meaning and near 0 for another, and comparable between models,
    since one model judges all. It knows English sentences. It hardly sees an antonym, or a detail left out.

    Args:
        writer: Runs the model.
        calibration: The `weights` of the `FEATURES` and the `bias`, which a config has in its field `judge`.

    Raises:
        InputError: The weights are of other features.
    """

    def __init__(self, writer: ModelWriter, calibration: Mapping[str, Any]):
        if set(calibration["weights"]) != set(FEATURES):
            raise InputError(f"`judge` of the model's config needs weights of {', '.join(FEATURES)}; fit it anew")
        self.writer, self.bias = writer, calibration["bias"]
        self.weights = np.array([calibration["weights"][name] for name in FEATURES])

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        logits = pair_features(self.writer, *_columns(judged), batch_size) @ self.weights + self.bias
        return ((1 + np.tanh(logits / 2)) / 2).tolist()


def find_open_judge(writer: ModelWriter) -> OpenJudge | None:
    """Make the judge of the model that paraphrases, if calibrated, else of the package's; None if neither is."""
    calibration = getattr(getattr(writer.model, "config", None), "judge", None)
    if calibration is None:
        return _load_released_judge(writer.device)
    return OpenJudge(writer, calibration)


@cache
def _load_released_judge(device: torch.device) -> OpenJudge | None:
    writer = ModelWriter(*load_paraphraser(device=device))
    calibration = getattr(writer.model.config, "judge", None)
    return None if calibration is None else OpenJudge(writer, calibration)


class OwnFluency:
    """How probable the model that wrote a candidate finds it, given the source.

    The geometric mean of the probabilities of its tokens: exp of the mean log-probability, without temperature, noise
    and penalties of the search that found it. A beam search that knows this number is believed; other candidates are
    read once more. It measures how likely the model finds the text: good style, and closeness to its training data. It
    does not measure grammar as people see it: dull candidates get more than lively ones, a rare name costs much, and a
    model that repeats itself is sure of it. The figures of two models do not compare.
    """

    def __init__(self, writer: ModelWriter):
        self.writer = writer

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float | None]:
        """Return a number from 0 to 1 for each candidate; None where a server does not tell it."""
        scores = [one.fluency for one in judged]
        if not self.writer.scores_texts:
            return scores
        left = [place for place, score in enumerate(scores) if score is None]
        pairs = [pair for place in left if (pair := judged[place].pair) is not None] or None
        sources, candidates = _columns([judged[place] for place in left])
        for place, mean in zip(left, self.writer.mean_log_probs(sources, candidates, batch_size, pairs), strict=True):
            scores[place] = math.exp(mean)
        return scores


class CausalFluency:
    """How probable a language model finds a candidate by itself: the inverse of its perplexity.

    The geometric mean of the probabilities of its tokens, of the first too where the tokenizer has a mark of
    beginning. It knows nothing of the source, prefers long and common phrases, and punishes rare names.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase):
        self.model, self.tokenizer = model.eval(), tokenizer

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        """Return a number from 0 to 1 for each candidate; 0 for one that has no token to predict."""
        ids = [self._encode(one.candidate) for one in judged]
        return run_by_length(
            self.model, lambda rows: self._score([ids[row] for row in rows]), list(map(len, ids)), batch_size
        )

    def _encode(self, text: str) -> list[int]:
        limit = source_limit(self.model, self.tokenizer)
        ids = self.tokenizer(text, truncation=True, max_length=limit, verbose=False)["input_ids"]
        begin = self.tokenizer.bos_token_id
        return ids if begin is None or ids[:1] == [begin] else [begin, *ids][:limit]

    def _score(self, rows: list[list[int]]) -> list[float]:
        width = max(map(len, rows))
        if width < 2:
            return [0.0] * len(rows)
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=input_device(self.model))
        mask = torch.arange(width, device=ids.device) < torch.tensor([[len(row)] for row in rows], device=ids.device)
        log_probs = self.model(input_ids=ids, attention_mask=mask.long()).logits[:, :-1].float().log_softmax(-1)
        chosen = log_probs.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1).masked_fill(~mask[:, 1:], 0.0)
        counts = mask[:, 1:].sum(1)
        means = chosen.sum(1) / counts.clamp(min=1)
        return means.exp().masked_fill(counts == 0, 0.0).tolist()


def load_causal_fluency(
    path: str | os.PathLike, device: torch.device, trust_remote_code: bool = False
) -> CausalFluency:
    """Load a language model and its tokenizer from a folder or the Hub; InputError where that fails."""
    try:
        model = load_model(AutoModelForCausalLM, path, trust_remote_code)
        tokenizer = load_tokenizer(path, trust_remote_code)
    except (OSError, ValueError) as error:
        where = "holds no" if Path(path).is_dir() else "is not a"
        raise InputError(f"`fluency`: {path} {where} loadable causal language model: {error}") from error
    return CausalFluency(model.to(device), tokenizer)


def text_features(writer: ModelWriter, texts: Sequence[str], batch_size: int) -> np.ndarray:
    """Compute the features that separate text a model was trained on from other text, `(texts, 3)`.

    They are the mean log-probability of a text's tokens given the text itself, its characters a token, and the share
    of its words that are among the most common ones of English.
    """
    if not texts:
        return np.zeros((0, 3))
    log_probs = writer.token_log_probs(texts, texts, batch_size)
    rows = []
    for text, one in zip(texts, log_probs, strict=True):
        words = WORD.findall(text.lower())
        common = sum(word in COMMON_WORDS for word in words) / max(len(words), 1)
        rows.append([np.mean(one), len(text) / max(len(one) - 1, 1), common])  # the last token is the end mark
    return np.array(rows)


class OwnText:
    """Finds texts that are not of the kind a model was trained on.

    Args:
        writer: Runs the model. Where its config has a field `own_text`, that holds the `weights` of the three features
            of `text_features` and a `bias`; a weighted sum below 0 means another language or code. Without the field
            nothing is refused.
    """

    def __init__(self, writer: ModelWriter):
        self.writer, self.limits = writer, getattr(getattr(writer.model, "config", None), "own_text", None)

    def find_refusals(self, texts: Sequence[str], batch_size: int) -> list[str | None]:
        """Say of each text why the model should not paraphrase it; None where it may, and of a blank text."""
        if self.limits is None:
            return [None] * len(texts)
        refusals = [find_foreign_form(text) for text in texts]
        left = [place for place, text in enumerate(texts) if refusals[place] is None and normal_form(text)]
        features = text_features(self.writer, [texts[place] for place in left], batch_size)
        scores = features @ np.array(self.limits["weights"]) + self.limits["bias"]
        for place, score in zip(left, scores, strict=True):
            if score < 0:
                refusals[place] = REFUSAL.format("other languages or code")
        return refusals


def find_foreign_form(text: str) -> str | None:
    """Say whether a text is in another script than Latin, one word or a list; None for any other and a blank one."""
    letters = LETTER.findall(text)
    if sum(LATIN.match(letter) is not None for letter in letters) < len(letters) / 2:
        return REFUSAL.format("other scripts")
    if sum(bool(normal_form(word)) for word in text.split()) == 1:
        return REFUSAL.format("single words")
    entries = [entry for entry in SEPARATOR.split(text) if entry]
    if len(entries) > 2 and not SENTENCE_END.search(text) and all(len(entry.split()) < 3 for entry in entries):
        return REFUSAL.format("lists")
    return None
