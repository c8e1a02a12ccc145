"""The candidates of every text: by `generate()`, and by noise on sentence vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.errors import InputError
from ..models.layers.language_model_head import score_words
from ..models.layers.layer_weights import input_device
from ..models.layers.portable import can
from ..models.search.batch_writing import Output
from ..models.search.generation_request import GenerationRequest
from ..models.search.pipeline_checks import check_arguments, find_pairs
from ..models.search.scoring_rules import log_normalizer
from ..models.text.encoded_inputs import control_ids
from ..models.text.stand_ins import find_stand_ins, put_stand_ins
from ..models.text.surface import restore_surface
from ..models.text.unknown_words import can_replace_unknown
from .engine import SourceCutter, encode_with_labels, generate_outputs, inference, pick, run_by_length
from .seeded_sampling import sample_seeded, seed_of

if TYPE_CHECKING:
    from ..retrieval import ParaphraseRetriever

Texts = Sequence[str]
Pairs = Sequence[tuple[str, str]] | None

DECODINGS = ("beam", "diverse_beam", "dips", "sample", "noise")
# Where the model's generation config does not say otherwise, as in the pipeline.
DEFAULTS = {"max_new_tokens": 256}
# Arguments of `generate()` and of the pipeline that would contradict the writer's own.
OWN = {"num_return_sequences": "num_candidates", "do_sample": "decoding='sample'"}
NOISE_OPTIONS = ("temperature", "noise", "max_new_tokens")


class Candidate(NamedTuple):
    """A text that may be a paraphrase.

    Args:
        text: The text.
        pair: The sentence pair that it was edited by; None where the model edits by none.
        fluency: How probable the search found it, from 0 to 1, as `OwnFluency` computes it; None where unknown.
        reason: Why it cannot be a paraphrase, such as an answer that was cut off; None where it may be one.
    """

    text: str
    pair: tuple[str, str] | None = None
    fluency: float | None = None
    reason: str | None = None


class Judged(NamedTuple):
    """A candidate before its judge.

    Args:
        source: The text.
        candidate: Its paraphrase, with words, as the source.
        pair: The sentence pair that it was edited by, where the model does so.
        fluency: As the search found it; None where it does not know.
    """

    source: str
    candidate: str
    pair: tuple[str, str] | None = None
    fluency: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request to a writer, for each text.

    Args:
        decoding: One of `DECODINGS`; "noise" is for a model that embeds sentences.
        num_candidates: Candidates of each text, by all its pairs together.
        num_neighbors: Pairs for each text; None for 5, or where the model edits by none.
        seed: Of "sample" and "noise".
        batch_size: Texts at once.
        max_source_length: Maximum tokens of a text and its prefix that a search reads; None for `source_limit`.
        strength: How far candidates are to differ from the text, for a model that can be told so.
        keep: What candidates must keep, as `check_keep` returns it, for a model that can be told so.
        generate_kwargs: Arguments of `generate()`, and `replace_unknown`, which is on where it can be; or with "noise"
            of `EmbeddingParaphraser.paraphrase`.
    """

    decoding: str
    num_candidates: int
    num_neighbors: int | None = None
    seed: int = 0
    batch_size: int = 16
    max_source_length: int | None = None
    strength: float | None = None
    keep: Sequence[str] = ()
    generate_kwargs: Mapping[str, Any] = field(default_factory=dict)


def write(writer: ModelWriter, texts: Sequence[str], ask: Ask) -> list[list[Candidate]]:
    """Write the candidates of texts with words, the likeliest first where a search has found them.

    A text's outputs do not depend on the other texts. Texts of similar length share a batch.
    """
    if ask.decoding == "noise":
        return writer.write_from_noise(texts, ask)
    if writer.retriever is None:
        return writer.write(texts, None, ask)
    pairs = find_pairs(writer.retriever, texts, ask.num_neighbors or 5)
    items = [(text, pair) for text, group in zip(texts, pairs, strict=True) for pair in group]
    sources, own_pairs = [text for text, _ in items], [pair for _, pair in items]
    written = iter(writer.write(sources, own_pairs, ask) if items else ())
    return [[candidate for _ in group for candidate in next(written)] for group in pairs]


class ModelWriter:
    """Writes by the model's own `generate()`.

    Args:
        model: Any sequence-to-sequence model.
        tokenizer: Its tokenizer.
        retriever: Finds the pairs of a model that edits by them; None for any other.
        prefix: What the model reads before every text.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        retriever: ParaphraseRetriever | None = None,
        prefix: str = "",
    ):
        self.model, self.tokenizer, self.retriever, self.prefix = model, tokenizer, retriever, prefix
        self.tokens: Counter[str] = Counter()  # that a server has counted
        # Whether it can tell how probable any text is.
        self.scores_texts = True
        self.ignores_case = ignores_case(tokenizer)
        self.replaces_unknown = can_replace_unknown(model, tokenizer)
        self.reads_strength = bool(control_ids(model.config, tokenizer))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return input_device(self.model)

    def default_decoding(self, n: int) -> str:
        """How candidates are found unless the caller says so.

        The best of a beam is better than the best of a diverse one; the three best of a diverse one are less alike.
        `hf-paraphrase compare --encoder` measures it.

        Args:
            n: How many paraphrases of each text are wanted.
        """
        if can(self.model.config, "embeds_sentences"):
            return "noise"
        return "beam" if n == 1 else "diverse_beam"

    def cutter(self, max_source_length: int | None = None, quiet: bool = False) -> SourceCutter:
        """Truncates texts to the tokens that the model reads; arguments as in `SourceCutter`."""
        return SourceCutter(self.model, self.tokenizer, max_source_length, self.prefix, quiet)

    def check(self, ask: Ask) -> None:
        """Refuse what this writer cannot do.

        Raises:
            InputError: With the argument's name.
        """
        check_arguments(ask.generate_kwargs)
        name = type(self.model).__name__
        if ask.decoding not in DECODINGS:
            raise InputError(f"`decoding` must be one of {', '.join(DECODINGS)}, not {ask.decoding!r}")
        if ask.decoding == "noise" and not can(self.model.config, "embeds_sentences"):
            raise InputError(f"`decoding='noise'` is for a model that embeds sentences, which a {name} does not")
        if ask.num_neighbors is not None and self.retriever is None:
            raise InputError(f"`num_neighbors`: a {name} edits by no retrieved pair")
        if ask.decoding == "noise" and (unknown := ask.generate_kwargs.keys() - NOISE_OPTIONS):
            raise InputError(f"`{min(unknown)}`: `decoding='noise'` takes {', '.join(NOISE_OPTIONS)}")
        if ask.decoding != "noise" and ask.generate_kwargs.get("noise") is not None:
            raise InputError("`noise` is for `decoding='noise'` alone")
        if ask.decoding != "noise" and isinstance(ask.generate_kwargs.get("temperature"), str):
            raise InputError("`temperature` must be a number, but for `decoding='noise'`")
        for argument, other in OWN.items():
            if argument in ask.generate_kwargs:
                raise InputError(f"`{argument}` is not asked of a pool of candidates: see `{other}`")
        if ask.decoding != "noise":
            self._request(ask)

    def write(self, texts: Texts, pairs: Pairs, ask: Ask) -> list[list[Candidate]]:
        """Write candidates of texts, each by one pair, or none."""
        options: dict[str, Any] = {"pairs": pairs, "prefix": self.prefix, "max_source_length": ask.max_source_length}
        options |= {"batch_size": ask.batch_size, "description": None}
        groups = generate_outputs(self.model, self.tokenizer, texts, self._request(ask), **options)

        def read(text: str, pair: tuple[str, str] | None, output: Output) -> Candidate:
            fluency = None if output.log_prob is None else math.exp(output.log_prob)
            return Candidate(self._finish(text, output.text), pair, fluency)

        rows = zip(texts, pairs or repeat(None, len(texts)), groups, strict=True)
        return [[read(text, pair, output) for output in group] for text, pair, group in rows]

    def write_from_noise(self, texts: Sequence[str], ask: Ask) -> list[list[Candidate]]:
        """By sentence vectors with noise; one text at a time, since its draws depend on its place among several."""
        model: Any = self.model
        options, found = {"batch_size": ask.batch_size, **ask.generate_kwargs}, []
        with inference(model):
            for text in texts:
                options["seed"] = seed_of(ask.seed, text)
                group = model.paraphrase(self.prefix + text, self.tokenizer, ask.num_candidates, **options)
                found.append([Candidate(self._finish(text, one.text)) for one in group])
        return found

    def mean_log_probs(self, sources: Texts, targets: Texts, batch_size: int, pairs: Pairs = None) -> list[float]:
        """The mean over the tokens of each target of what `token_log_probs`, which has the arguments, returns."""
        found = self.token_log_probs(sources, targets, batch_size, pairs)
        return [sum(log_probs) / len(log_probs) for log_probs in found]

    def token_log_probs(
        self, sources: Texts, targets: Texts, batch_size: int, pairs: Pairs = None
    ) -> list[list[float]]:
        """How probable the model finds each token of each target, given its source and the tokens before it, in nats.

        Args:
            sources: Texts with words.
            targets: One text with words for each source. All its tokens count, including end-of-sequence tokens. What
                exceeds `source_limit` is cut, on both sides.
            batch_size: Batch size; rows of similar length share a batch.
            pairs: For each source the pair to edit it by, for a model that does so.
        """
        model: Any = self.model
        sources = [self.prefix + source for source in sources]
        joined = [f"{source} {target}" for source, target in zip(sources, targets, strict=True)]
        stand_ins = [find_stand_ins(self.tokenizer, text) for text in joined]
        sources, targets = (list(map(put_stand_ins, texts, stand_ins)) for texts in (sources, targets))

        def measure(rows: list[int]) -> list[list[float]]:
            inputs = encode_with_labels(model, self.tokenizer, *pick(rows, sources, targets, pairs))
            labels = inputs["labels"]
            if hasattr(model, "prepare_decoder_input_ids_from_labels"):  # so that no loss is computed
                inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels=inputs.pop("labels"))
            is_token = labels != -100
            if getattr(model, "has_plain_loss", False):  # so that nothing is computed at padding
                states = model.model(**inputs, return_dict=True).last_hidden_state
                logits = score_words(model.lm_head, states[is_token]).float()
            else:
                logits = model(**inputs).logits[is_token].float()
            chosen = logits.gather(1, labels[is_token].unsqueeze(1)) - log_normalizer(logits)
            return [part.tolist() for part in chosen.squeeze(1).split(is_token.sum(1).tolist())]

        # By targets first: most of the work is the vocabulary's, at each of their positions.
        lengths = list(zip(*(map(len, texts) for texts in (targets, sources)), strict=True))
        return run_by_length(model, measure, lengths, batch_size)

    def _request(self, ask: Ask) -> GenerationRequest:
        pairs = 1 if self.retriever is None else ask.num_neighbors or 5
        options = {"do_sample": False, "decoding": ask.decoding, "replace_unknown": self.replaces_unknown}
        options |= {"strength": ask.strength, **ask.generate_kwargs}
        if ask.decoding == "sample":
            options |= {"do_sample": True, "num_beams": 1, "decoding": sample_seeded, "seed": ask.seed}
        return GenerationRequest.from_kwargs(
            num_candidates=-(-ask.num_candidates // pairs), defaults=DEFAULTS, **options
        )

    def _finish(self, source: str, output: str) -> str:
        """Clean up an output: single spaces, and the capitals that a model without case does not write."""
        output = " ".join(output.split())
        return restore_surface(output, source) if self.ignores_case else output


def ignores_case(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer lower-cases, so that its model writes no capitals."""
    if not tokenizer.is_fast:
        return tokenizer("AB")["input_ids"] == tokenizer("ab")["input_ids"]
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is not None and normalizer.normalize_str("Ab").strip("▁ ") == "ab"
