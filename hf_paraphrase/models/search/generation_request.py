"""Generation requests: the single interpretation of a call, for the pipeline, for corpora and for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import GenerationMode

from ..text.candidate_selection import select_by_difference, select_by_jaccard, select_by_mbr
from ..text.encoded_inputs import check_strength, read_prefix
from ..text.unknown_words import check_replaceable
from .beam_search import beam_search
from .dips import dips
from .diverse_beam_search import diverse_beam_search
from .pipeline_checks import check_arguments, plain_number

# What `generate()` does not hand on to a search of another's.
FOR_ITS_OWN_SEARCH = ("assistant_model", "assistant_tokenizer", "streamer", "synced_gpus", "tokenizer")

DECODINGS: dict[str, Callable] = {"beam": beam_search, "diverse_beam": diverse_beam_search, "dips": dips}


def find_decoding(decoding: str | Callable | None) -> Callable | None:
    """What `generate(custom_generate=…)` takes: None for transformers' own decoding; a function is used as it is.

    Raises:
        ValueError: Unknown decoding.
    """
    if decoding is None or callable(decoding):
        return decoding
    if not isinstance(decoding, str) or decoding not in DECODINGS:
        raise ValueError(f"`decoding` must be one of {', '.join(DECODINGS)}, or a function, not {decoding!r}")
    return DECODINGS[decoding]


def asks_for_beams(parameters: Mapping[str, Any]) -> bool:
    """Whether `generate()` would run its own beam search with these parameters."""
    if any(parameters.get(name) is not None for name in FOR_ITS_OWN_SEARCH):
        return False
    config = GenerationConfig()
    names = vars(config).keys() & parameters.keys()
    vars(config).update({name: parameters[name] for name in names})
    return config.get_generation_mode() == GenerationMode.BEAM_SEARCH


# Arguments of `generate()` that number the texts of a batch, or hold a row for each.
OF_A_TEXT = (
    "prefix_allowed_tokens_fn",
    "decoder_input_ids",
    "decoder_inputs_embeds",
    "decoder_attention_mask",
    "encoder_outputs",
    "attention_mask",
    "inputs_embeds",
)


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """The outputs for every text: search, retrieved pairs, number of outputs, and the choice among them.

    Fields that `Text2TextGenerationPipeline.__call__` takes too mean the same; None means not requested.

    Args:
        parameters: Arguments of `generate()`.
        defaults: Those that hold where neither `parameters` nor the model's generation config decides. A
            `generation_config` among `parameters` leaves nothing to them.

    Raises:
        ValueError: These contradict each other, or ask for less than one.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    decoding: str | Callable | None = None
    num_candidates: int | None = None
    select: str | Callable | None = None
    matcher: Any = None
    num_neighbors: int | None = None
    retrieved: Sequence[tuple[str, str]] | None = None
    return_retrieved: bool | None = None
    retriever: Any = None
    replace_unknown: bool = False
    restore_surface: bool = False
    strength: float | None = None

    def __post_init__(self):
        find_decoding(self.decoding)
        check_strength(self.strength)
        check_arguments(
            {"num_neighbors": self.num_neighbors, "num_candidates": self.num_candidates, **self.parameters}
        )
        # transformers and torch refuse numbers of NumPy's types in places.
        object.__setattr__(self, "parameters", {name: plain_number(value) for name, value in self.parameters.items()})
        if self.retrieved is not None and self.num_neighbors is not None:
            raise ValueError("`num_neighbors` looks pairs up and `retrieved` gives them: pass one of the two")
        if self.matcher is not None and self.select is None:
            raise ValueError("`matcher` is asked with `select='matcher'` alone")
        if self.select is not None and self.num_candidates is None:
            raise ValueError("`select` chooses among `num_candidates` paraphrases: say how many")
        for name in ("replace_unknown", "restore_surface"):
            if getattr(self, name) and self.parameters.get("streamer") is not None:
                raise ValueError(f"`streamer`: `{name}` needs the whole output")

    @classmethod
    def from_kwargs(cls, **kwargs: Any) -> GenerationRequest:
        """Split the arguments of a call: those that are not fields of the request are for `generate()`."""
        own = {name: kwargs.pop(name) for name in [field.name for field in fields(cls)] if name in kwargs}
        return cls(parameters=kwargs, **own)

    def asked_of_pairs(self) -> list[str]:
        """Names of the options for models that edit retrieved pairs."""
        names = ("num_neighbors", "retrieved", "return_retrieved", "retriever")
        return [name for name in names if getattr(self, name) is not None]

    def count_outputs(self, model: PreTrainedModel) -> int:
        """How many sequences a text gets, by each of its pairs where it has any."""
        return self.num_candidates or self._decided(model).get("num_return_sequences") or 1

    def generate_kwargs(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
        """Arguments of `model.generate()`, except the inputs.

        There are at least as many beams as outputs or internal candidates, unless the call sets their number. Sampling
        without beams needs none. Beams that are added can be shared out among `num_beam_groups`, which ask for diverse
        beam search by themselves, as in transformers 4.

        Args:
            tokenizer: Its tokenizer, whose padding fills the outputs where nothing else says by what.

        Raises:
            ValueError: A search that knows no word before the whole output is to be streamed, or unknown words
                cannot be replaced.
        """
        if self.replace_unknown:
            check_replaceable(model, tokenizer)
        decided, is_whole = self._decided(model), self.parameters.get("generation_config") is not None
        defaults = {} if is_whole else {"pad_token_id": tokenizer.pad_token_id, **self.defaults}
        if "max_length" in decided:
            defaults.pop("max_new_tokens", None)
        kwargs = {**{name: value for name, value in defaults.items() if name not in decided}, **self.parameters}
        if "max_length" in self.parameters and "max_new_tokens" in decided:
            # In `generate()`, the generation config's `max_new_tokens` would win.
            kwargs.setdefault("max_new_tokens", None)
        kwargs |= _fit_positions(model, {**decided, **kwargs})
        if decided.get("stop_strings"):
            check_stop_strings(tokenizer)
            kwargs["tokenizer"] = tokenizer
        search = kwargs.get("custom_generate") if self.decoding is None else find_decoding(self.decoding)
        if search is beam_search:  # what nobody names is beam search too, where it has several beams
            search = None
        # These ask for it by transformers 4's rules.
        if search is None and ((decided.get("num_beam_groups") or 1) > 1 or decided.get("diversity_penalty")):
            search = diverse_beam_search
        if search is None and decided.get("do_sample") and self.parameters.get("seed") is not None:
            search, kwargs["num_beams"] = _find_seeded_sampling(), self.parameters.get("num_beams") or 1
            if kwargs["num_beams"] > 1:
                raise ValueError("`seed` is for sampling without beams: leave `num_beams` out")
        if search is not None and kwargs.get("streamer") is not None:
            raise ValueError(
                f"`streamer`: {getattr(search, '__name__', 'this decoding')} knows no word before the whole output"
            )
        if self.num_candidates is not None:
            kwargs["num_return_sequences"] = self.num_candidates
        suppressed = decided.get("suppress_tokens") or []
        if self.replace_unknown and tokenizer.unk_token_id in suppressed:
            kwargs["suppress_tokens"] = [word for word in suppressed if word != tokenizer.unk_token_id] or None
        is_given = is_whole or "num_beams" in self.parameters
        decided |= kwargs
        if self.num_candidates is not None or not is_given:
            beams = count_beams(decided, is_given)
            if beams != (decided.get("num_beams") or 1):
                kwargs["num_beams"] = decided["num_beams"] = beams
        if search is None and asks_for_beams(decided):
            search = beam_search
        if search is not None or "custom_generate" in kwargs:
            kwargs["custom_generate"] = search
        return kwargs

    def choose(self, sources: Sequence[str], candidates: Sequence[Sequence[str]]) -> Sequence[int]:
        """The place of the chosen one among the candidates of each text."""
        if callable(self.select):
            return self.select(sources, candidates)
        if self.select in (None, "score"):
            return [0] * len(sources)
        if self.select == "different":
            return select_by_difference(sources, candidates)
        if self.select == "jaccard":
            return select_by_jaccard(sources, candidates)
        if self.select == "mbr":
            return select_by_mbr(candidates)
        try:
            from hf_paraphrase.generation import select_candidates
        except ImportError as error:
            raise ValueError(
                f"`select={self.select!r}` needs the package hf_paraphrase, unlike 'different', 'jaccard', 'mbr' and "
                "'score'"
            ) from error
        return select_candidates(sources, candidates, by=self.select, matcher=self.matcher)

    def _decided(self, model: PreTrainedModel) -> dict[str, Any]:
        """The call's parameters over those of the generation config."""
        config = self.parameters.get("generation_config") or model.generation_config
        return {**config.to_diff_dict(), **self.parameters}


def check_stop_strings(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse, by a ValueError, a tokenizer of words: transformers (5.24) finds no strings in its output."""
    letters = "abcdef"
    if letters not in tokenizer.convert_tokens_to_string(tokenizer.tokenize(letters)):
        raise ValueError("`stop_strings` needs a tokenizer of subwords; with one of words, pass `stop_sequence`")


def _find_seeded_sampling() -> Callable:
    try:
        from hf_paraphrase.generation.seeded_sampling import sample_seeded
    except ImportError as error:
        raise ValueError("`seed` needs the package hf_paraphrase") from error
    return sample_seeded


def _fit_positions(model: PreTrainedModel, decided: Mapping[str, Any]) -> dict[str, int]:
    """As many tokens as a decoder has positions, where more are asked for; what the call begins it with counts."""
    positions = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    if not positions:
        return {}
    begun = decided.get("decoder_input_ids")
    most = {"max_new_tokens": positions + 1 - (1 if begun is None else begun.shape[-1]), "max_length": positions + 1}
    return {name: bound for name, bound in most.items() if (decided.get(name) or 0) > bound}


def check_arguments_of_a_text(parameters: Mapping[str, Any], num_texts: int) -> None:
    """Refuse, by a ValueError, arguments of one text where there are several, which are batched and sorted."""
    for name in OF_A_TEXT:
        if num_texts > 1 and parameters.get(name) is not None:
            raise ValueError(
                f"`{name}` belongs to one text: pass the texts one by one, or a rule for all of them as "
                "`logits_processor`"
            )


def count_beams(parameters: Mapping[str, Any], is_given: bool) -> int:
    """The beams that `num_return_sequences` and `num_beam_groups` need; a given number is kept where it suffices."""
    beams, outputs, groups = (
        parameters.get(name) or 1 for name in ("num_beams", "num_return_sequences", "num_beam_groups")
    )
    if (is_given and beams >= outputs) or (beams == 1 and parameters.get("do_sample")):
        return beams
    return -(-max(beams, outputs) // groups) * groups


def task_parameters(model: PreTrainedModel, task: str = "text2text-generation") -> dict[str, Any]:
    """A checkpoint's settings for a task: generation parameters, and `prefix`, the text before every input, or "".

    transformers 5 no longer reads these fields, but older checkpoints have them.
    """
    parameters = dict((getattr(model.config, "task_specific_params", None) or {}).get(task, {}))
    return {**parameters, "prefix": read_prefix(model.config, task)}
