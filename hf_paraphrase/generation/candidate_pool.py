"""The candidates of every text, however they are written: by a search, by sampling, by retrieved pairs or by noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..models.search.argument_types import check_arguments
from ..models.search.embedding_paraphraser import embeds_sentences
from ..models.search.generation_request import GenerationRequest
from ..models.search.retrieved_pairs import find_pairs
from ..models.text.control_tokens import find_control
from ..models.text.surface import restore_surface
from ..models.text.unknown_words import can_replace_unknown
from .ctranslate2_engine import CTranslate2Engine
from .engine import generate_outputs, inference
from .seeded_sampling import sample_seeded, seed_of

if TYPE_CHECKING:
    from ..retrieval import ParaphraseRetriever

__all__ = ["DECODINGS_OF_POOL", "Candidate", "CandidatePool", "default_decoding", "ignores_case"]

DECODINGS_OF_POOL = ("beam", "diverse_beam", "dips", "sample", "noise")
# Where the model's generation config does not say otherwise, as in the pipeline.
DEFAULTS = {"max_new_tokens": 256}
# Arguments of `generate()` and of the pipeline that would contradict the pool's own.
OWN = {"num_return_sequences": "num_candidates", "select": "n", "do_sample": "decoding='sample'"}
NOISE_OPTIONS = ("temperature", "noise", "max_new_tokens")


class Candidate(NamedTuple):
    """A text that may be a paraphrase.

    Args:
        text: The text.
        pair: The sentence pair that it was edited by; None where the model edits by none.
    """

    text: str
    pair: tuple[str, str] | None = None


class CandidatePool:
    """Writes candidates of texts; those of a text do not depend on the texts beside it.

    Args:
        model: Any sequence-to-sequence model.
        tokenizer: Its tokenizer.
        retriever: Finds the pairs of a model that edits by them; None for any other.
        prefix: What the model reads before every text.
        decoding: "beam", "diverse_beam", "dips", "sample", or "noise" for a model that embeds sentences.
        num_candidates: Candidates of each text, by all its pairs together.
        num_neighbors: Pairs for each text; None for 5.
        seed: Of "sample" and "noise".
        restore_surface: Whether outputs get the case and the spacing of ordinary English text; None where the
            tokenizer reads upper case as lower case.
        engine: What runs the model in its place, by "beam" alone; None for `generate()`.
        max_source_length: Most tokens of a text and its prefix that a search reads; None for `source_limit`.
        strength: How far candidates are to differ from the text, for a model with control tokens.
        generate_kwargs: Arguments of `generate()`, and `replace_unknown`, which is on where it can be; or with "noise"
            of `EmbeddingParaphraser.paraphrase`.

    Raises:
        InputError: There is no such decoding, or not with this model.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        retriever: ParaphraseRetriever | None,
        prefix: str,
        *,
        decoding: str,
        num_candidates: int,
        num_neighbors: int | None,
        seed: int,
        restore_surface: bool | None = None,
        engine: CTranslate2Engine | None = None,
        max_source_length: int | None = None,
        strength: float | None = None,
        **generate_kwargs: Any,
    ):
        self.model, self.tokenizer, self.retriever, self.prefix = model, tokenizer, retriever, prefix
        self.engine, self.decoding, self.max_source_length = engine, decoding, max_source_length
        self._check(num_neighbors, generate_kwargs)
        self.num_candidates, self.num_neighbors, self.seed = num_candidates, num_neighbors or 5, seed
        self.kwargs, self.strength = generate_kwargs, strength
        self.restore_surface = ignores_case(tokenizer) if restore_surface is None else restore_surface
        self.request = self._make_request()
        if engine is not None:
            engine.check(self._engine_kwargs())

    def write(self, texts: Sequence[str], batch_size: int) -> list[list[Candidate]]:
        """Write the candidates of each text, the likeliest first where a search has found them.

        Args:
            texts: Texts with words.
            batch_size: Texts at once.
        """
        if self.decoding == "noise":
            return [self._write_from_noise(text, batch_size) for text in texts]
        if self.retriever is None:
            return self._write([(text, None) for text in texts], batch_size)
        pairs = find_pairs(self.retriever, texts, self.num_neighbors)
        items = [(text, pair) for text, group in zip(texts, pairs, strict=True) for pair in group]
        written = iter(self._write(items, batch_size))
        return [[candidate for _ in group for candidate in next(written)] for group in pairs]

    def _check(self, num_neighbors: int | None, generate_kwargs: dict[str, Any]) -> None:
        check_arguments(generate_kwargs)
        name = type(self.model).__name__
        if self.decoding not in DECODINGS_OF_POOL:
            raise InputError(f"`decoding` must be one of {', '.join(DECODINGS_OF_POOL)}, not {self.decoding!r}")
        if self.decoding == "noise" and not embeds_sentences(self.model):
            raise InputError(f"`decoding='noise'` is for a model that embeds sentences, which a {name} does not")
        if num_neighbors is not None and self.retriever is None:
            raise InputError(f"`num_neighbors`: a {name} edits by no retrieved pair")
        if self.decoding == "noise" and (unknown := generate_kwargs.keys() - NOISE_OPTIONS):
            raise InputError(f"`{min(unknown)}`: `decoding='noise'` takes {', '.join(NOISE_OPTIONS)}")
        if self.engine is not None and self.decoding != "beam":
            raise InputError(
                f"`decoding={self.decoding!r}` is not available with `backend='ctranslate2'`, which has 'beam' alone"
            )
        if self.engine is not None and generate_kwargs.get("replace_unknown"):
            raise InputError("`replace_unknown` is not available with `backend='ctranslate2'`")
        for argument, other in OWN.items():
            if argument in generate_kwargs:
                raise InputError(f"`{argument}` is not asked of a pool of candidates: see `{other}`")

    def _make_request(self) -> GenerationRequest:
        pairs = 1 if self.retriever is None else self.num_neighbors
        count = -(-self.num_candidates // pairs)
        options = {"do_sample": False, "decoding": self.decoding}
        can_replace = self.engine is None and can_replace_unknown(self.model, self.tokenizer)
        options |= {"replace_unknown": can_replace, **self.kwargs}
        if self.decoding == "sample":
            options |= {"do_sample": True, "num_beams": 1, "decoding": sample_seeded, "seed": self.seed}
        elif self.decoding == "noise":
            options = {}
        return GenerationRequest.from_kwargs(
            num_candidates=count, defaults=DEFAULTS, strength=self.strength, **options
        )

    def _write(self, items: list[tuple[str, tuple[str, str] | None]], batch_size: int) -> list[list[Candidate]]:
        """Candidates of texts, each by one pair, or none."""
        pairs = None if self.retriever is None else [pair for _, pair in items]
        inputs = [text for text, _ in items]
        options = {"batch_size": batch_size, "pairs": pairs, "prefix": self.prefix, "description": None}
        if self.engine is not None:
            read = [self.prefix + text for text in inputs]
            control = find_control(self.model.config, self.tokenizer, self.strength)
            limits = batch_size, self.max_source_length, control
            outputs = self.engine.generate(read, *limits, **self._engine_kwargs())
            return [
                [Candidate(self._finish(text, output)) for output in group]
                for text, group in zip(inputs, outputs, strict=True)
            ]
        options["max_source_length"] = self.max_source_length
        groups = generate_outputs(self.model, self.tokenizer, inputs, self.request, **options)
        return [
            [Candidate(self._finish(text, output.text), pair) for output in group]
            for (text, pair), group in zip(items, groups, strict=True)
        ]

    def _engine_kwargs(self) -> dict[str, Any]:
        kwargs = self.request.generate_kwargs(self.model, self.tokenizer)
        return {name: value for name, value in kwargs.items() if name != "custom_generate"}

    def _write_from_noise(self, text: str, batch_size: int) -> list[Candidate]:
        """By sentence vectors with noise; one text at a time, since its draws depend on its place among several."""
        options = {"seed": seed_of(self.seed, text), "batch_size": batch_size, **self.kwargs}
        with inference(self.model):
            found = self.model.paraphrase(self.prefix + text, self.tokenizer, self.num_candidates, **options)
        return [Candidate(self._finish(text, candidate.text)) for candidate in found]

    def _finish(self, source: str, output: str) -> str:
        """Make of what a model wrote for a text what people read."""
        output = " ".join(output.split())
        return restore_surface(output, source) if self.restore_surface else output


def default_decoding(model: PreTrainedModel, n: int, engine: Any = None) -> str:
    """How candidates are found unless somebody says it.

    The best of a beam is better than the best of a diverse one; the three best of a diverse one are less alike.
    `hf-paraphrase compare --encoder` measures it.

    Args:
        model: Any sequence-to-sequence model.
        n: How many paraphrases of each text are wanted.
        engine: Another engine that runs the model, if one does; it searches by beams alone.
    """
    if embeds_sentences(model):
        return "noise"
    return "beam" if n == 1 or engine is not None else "diverse_beam"


def ignores_case(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Tell whether a tokenizer reads upper case as lower case, so that its model writes no capitals."""
    if not tokenizer.is_fast:
        return tokenizer("AB")["input_ids"] == tokenizer("ab")["input_ids"]
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is not None and normalizer.normalize_str("Ab").strip("▁ ") == "ab"
