"""Which writer runs a model: `generate()`, a prompt, a server elsewhere, or CTranslate2, a faster inference engine."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from huggingface_hub.constants import HF_HOME
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from xxhash import xxh3_64

from ..checkpoints.trust import find_file
from ..common.errors import InputError
from ..common.files import make_once
from ..common.installation import require
from ..models.layers.portable import can
from ..models.search.pipeline_checks import check_model, load_retriever
from ..models.text.encoded_inputs import control_ids, find_control, read_prefix, source_limit
from .language_model_writer import LanguageModelWriter
from .prompts import PROMPT_FILE, Prompt, load_prompt
from .server_writer import ServerWriter
from .writers import Ask, Candidate, ModelWriter, Pairs, Texts

if TYPE_CHECKING:
    from ..retrieval import ParaphraseRetriever


def load_writer(
    model: PreTrainedModel | str,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    retriever: ParaphraseRetriever | None = None,
    prefix: str | None = None,
    prompt: str | os.PathLike | Prompt | None = None,
    backend: str | None = None,
    compute_type: str = "int8",
    trust_remote_code: bool = False,
) -> ModelWriter:
    """Make the writer of a model; arguments as in `Paraphraser`.

    Raises:
        InputError: Unknown backend, a model that it cannot run, or an argument for another kind of model.
    """
    if isinstance(model, str):
        return ServerWriter(str(backend), model, load_prompt(prompt))
    if backend not in (None, "ctranslate2"):
        raise InputError(f"`backend` must be ctranslate2, or None for generate(), not {backend!r}")
    tokenizer = cast(PreTrainedTokenizerBase, tokenizer)
    if not model.config.is_encoder_decoder and model.can_generate():
        others = {"prefix": prefix, "retriever": retriever}
        if given := [name for name, value in others.items() if value is not None]:
            raise InputError(f"`{given[0]}` is for encoder-decoders; a {type(model).__name__} reads a `prompt`")
        if prompt is None and model.name_or_path:
            prompt = find_file(model.name_or_path, PROMPT_FILE, revision=getattr(model.config, "_commit_hash", None))
        own_prompt = load_prompt(prompt)
        if backend is None:
            return LanguageModelWriter(model, tokenizer, own_prompt)
        return CTranslate2LanguageModelWriter(model, tokenizer, own_prompt, compute_type)
    check_model(model)
    if prompt is not None:
        raise InputError(f"`prompt` is for language models; a {type(model).__name__} reads the text itself")
    prefix = read_prefix(model.config) if prefix is None else prefix
    retriever = (retriever or load_retriever(model, trust_remote_code)) if can(model.config, "reads_pairs") else None
    if backend is None:
        return ModelWriter(model, tokenizer, retriever, prefix)
    return CTranslate2Writer(model, tokenizer, prefix, compute_type)


# What CTranslate2's converter asks of a config, and older checkpoints do not say: where layers are normalised.
CONFIG = {
    "bart": {"normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False},
    "pegasus": {"normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True},
}
# Parameters of `generate()`, and their names in CTranslate2.
PARAMETERS = {"num_beams": "beam_size", "num_return_sequences": "num_hypotheses"}
PARAMETERS |= {"max_new_tokens": "max_decoding_length", "min_new_tokens": "min_decoding_length"}
PARAMETERS |= {name: name for name in ("length_penalty", "no_repeat_ngram_size")}
# What changes nothing here: marks that the converted model knows, the last token of a text that is cut off, and what
# shapes samples, of which there are none.
SILENT = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id", "use_cache"}
SILENT |= {"transformers_version", "_from_model_config", "early_stopping", "temperature", "top_k", "top_p"}
# What changes nothing by its value, beside what is switched off.
NEUTRAL = {"repetition_penalty": 1, "num_beam_groups": 1}
# Tokens that are scored together: each has a row of the whole vocabulary.
MOST_TOKENS = 2048
# What saving a model writes into its config.
WRITTEN_BY_SAVING = {"architectures", "dtype", "transformers_version", "_name_or_path"}


class _Converted:
    """A model as CTranslate2 runs it; its weights are converted once, into the cache."""

    model_types: ClassVar[tuple[str, ...]]
    runner: ClassVar[str]  # of CTranslate2
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def load(self, compute_type: str) -> None:
        """Load the converted model.

        Args:
            compute_type: "int8", "float32" or another that CTranslate2 has on this machine.

        Raises:
            InputError: CTranslate2 is not installed, or cannot run the model.
        """
        require("ctranslate2", "ctranslate2", "`backend='ctranslate2'`", package="CTranslate2")
        model = self.model
        if model.config.model_type not in self.model_types:
            known, name = ", ".join(self.model_types), type(model).__name__
            raise InputError(f"`backend='ctranslate2'` runs {known}, and no {name}; leave it out")
        import ctranslate2

        try:
            self.converted = getattr(ctranslate2, self.runner)(
                str(_convert(model, self.tokenizer, compute_type)),
                device=model.device.type,
                device_index=model.device.index or 0,
                compute_type=compute_type,
                intra_threads=torch.get_num_threads(),
            )
        except (ValueError, RuntimeError, NotImplementedError) as error:
            raise InputError(f"`backend='ctranslate2'` cannot run this model in {compute_type}: {error}") from error

    def default_decoding(self, n: int) -> str:
        """The one that there is."""
        return "beam"

    def check_decoding(self, ask: Ask) -> None:
        """Refuse any other."""
        if ask.decoding != "beam":
            raise InputError(
                f"`decoding={ask.decoding!r}` is not available with `backend='ctranslate2'`, which has 'beam' alone"
            )

    def _translate(self, generate_kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of `generate()` in CTranslate2's words."""
        decided = {**self.model.generation_config.to_diff_dict(), **generate_kwargs}
        if "max_length" in generate_kwargs and generate_kwargs.get("max_new_tokens") is None:
            decided.pop("max_new_tokens", None)  # the call's goes before the checkpoint's
        options = dict(self._translate_one(name, value) for name, value in decided.items() if name not in SILENT)
        if "max_new_tokens" in decided:  # which goes before `max_length`, as in `generate()`
            options["max_decoding_length"] = decided["max_new_tokens"]
        # Its own defaults are two beams and a word at least.
        options = {"beam_size": 1, "min_decoding_length": 0, **options}
        return {name: value for name, value in options.items() if name}

    def _translate_one(self, name: str, value: Any) -> tuple[str, Any]:
        if name in PARAMETERS and (name, value) != ("length_penalty", 0):  # where it stops at the first output
            return PARAMETERS[name], value
        if name in ("max_length", "min_length"):  # the mark that the decoder starts from counts there
            return f"{name[:3]}_decoding_length", max(value - 1, 0)
        if name == "bad_words_ids":
            sequences = [row for row in value or () if row != [self.tokenizer.pad_token_id]]
            return "suppress_sequences", [self.tokenizer.convert_ids_to_tokens(row) for row in sequences]
        is_off = not value and name != "length_penalty"
        if name == "forced_bos_token_id" or is_off or NEUTRAL.get(name) == value:
            return "", None
        raise InputError(
            f"`{name}={value!r:.50}` is not available with `backend='ctranslate2'`, which has: {', '.join(PARAMETERS)}"
        )


class CTranslate2Writer(_Converted, ModelWriter):
    """Writes and scores with a model of BART, Marian, T5 or Pegasus.

    In float32 its beam search gives the outputs of `generate()` with `early_stopping=True`, which stops when a text
    has as many finished outputs as beams; it has no other rule. With `no_repeat_ngram_size` or `bad_words_ids` it
    renormalises without the forbidden words, unlike `generate()`, so outputs may differ. In int8, the default, they
    are nearly the same, and so are the scores; in float32 these differ by the probability that `generate()` leaves to
    Marian's padding, which is never written.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        prefix: What the model reads before every text.
        compute_type: "int8", "float32" or another that CTranslate2 has on this machine.

    Raises:
        InputError: CTranslate2 is not installed, or cannot run the model.
    """

    model_types = ("bart", "marian", "t5", "pegasus")
    runner = "Translator"

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prefix: str = "", compute_type: str = "int8"
    ):
        super().__init__(model, tokenizer, prefix=prefix)
        self.replaces_unknown = False
        self.load(compute_type)

    def check(self, ask: Ask) -> None:
        """Refuse what this writer cannot do."""
        super().check(ask)
        self.check_decoding(ask)
        if ask.generate_kwargs.get("replace_unknown"):
            raise InputError("`replace_unknown` is not available with `backend='ctranslate2'`")
        self._translate(self._kwargs(ask))

    def write(self, texts: Texts, pairs: Pairs, ask: Ask) -> list[list[Candidate]]:
        """Write candidates of texts; none of the models that CTranslate2 runs edits by pairs."""
        read = [self.prefix + text for text in texts]
        control = find_control(self.model.config, self.tokenizer, ask.strength)
        outputs = self.generate(read, ask.batch_size, ask.max_source_length, control, **self._kwargs(ask))
        return [
            [Candidate(self._finish(text, output)) for output in group]
            for text, group in zip(texts, outputs, strict=True)
        ]

    def generate(
        self,
        texts: Sequence[str],
        batch_size: int,
        max_source_length: int | None = None,
        control: int | None = None,
        **generate_kwargs: Any,
    ) -> list[list[str]]:
        """Several outputs of each text, the likeliest first.

        Args:
            texts: As the model reads them, prefix and all; texts of similar length share a batch.
            max_source_length: Maximum tokens of a text, which is cut there; None for `source_limit`.
            control: The id of the control token to put before each text; None for none.
            generate_kwargs: Arguments of `generate()`, over those of the model's generation config.

        Raises:
            InputError: An argument that CTranslate2 does not support.
        """
        options = self._translate(generate_kwargs)
        before = [] if control is None else self._tokens_of([control])
        read = [before + tokens for tokens in self._tokenize(texts, max_source_length)]
        first = self.model.generation_config.forced_bos_token_id
        prefix = None if first is None else [self.tokenizer.convert_ids_to_tokens([first])] * len(texts)
        results = self.converted.translate_batch(
            read, prefix, max_batch_size=batch_size, max_input_length=0, **options
        )
        return [[self._join(tokens) for tokens in result.hypotheses] for result in results]

    def mean_log_probs(self, sources: Texts, targets: Texts, batch_size: int, pairs: Pairs = None) -> list[float]:
        """The mean log-probability of the tokens of each target given its source, end marks included, in nats."""
        ids = self.tokenizer(text_target=list(targets), **self._cut())["input_ids"]
        end = self.tokenizer.eos_token_id
        has_end = [row[-1:] == [end] for row in ids]
        words = [row[:-1] if ends else row for row, ends in zip(ids, has_end, strict=True)]
        tokens = [self.tokenizer.convert_ids_to_tokens(row) for row in words]
        read = self._tokenize([self.prefix + source for source in sources])
        scored = self.converted.score_batch(read, tokens, max_batch_size=batch_size, max_input_length=0)
        # The end mark is scored whether the tokenizer writes it or not.
        log_probs = [one.log_probs if ends else one.log_probs[:-1] for one, ends in zip(scored, has_end, strict=True)]
        return [sum(row) / len(row) for row in log_probs]

    def _kwargs(self, ask: Ask) -> dict[str, Any]:
        kwargs = self._request(ask).generate_kwargs(self.model, self.tokenizer)
        kwargs.pop("custom_generate", None)
        return kwargs

    def _cut(self, max_length: int | None = None) -> dict[str, Any]:
        limit = source_limit(self.model, self.tokenizer) if max_length is None else max_length
        splits = self.tokenizer.split_special_tokens or bool(control_ids(self.model.config, self.tokenizer))
        return {"truncation": True, "max_length": limit, "verbose": False, "split_special_tokens": splits}

    def _tokenize(self, texts: Sequence[str], max_length: int | None = None) -> list[list[str]]:
        rows = self.tokenizer(list(texts), **self._cut(max_length))["input_ids"]
        return [self._tokens_of(row) for row in rows]

    def _tokens_of(self, ids: list[int]) -> list[str]:
        return cast(list[str], self.tokenizer.convert_ids_to_tokens(ids))

    def _join(self, tokens: list[str]) -> str:
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        return cast(str, self.tokenizer.decode(ids, skip_special_tokens=True)).strip()


class CTranslate2LanguageModelWriter(_Converted, LanguageModelWriter):
    """Writes and scores with a causal language model; in float32 its greedy outputs are those of `generate()`."""

    model_types = ("falcon", "gemma", "gpt2", "llama", "mistral", "qwen2", "qwen3")
    runner = "Generator"

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, compute_type: str = "int8"
    ):
        super().__init__(model, tokenizer, prompt)
        self.load(compute_type)

    def check(self, ask: Ask) -> None:
        """Refuse what this writer cannot do."""
        self.check_decoding(ask)
        super().check(ask)
        self._translate(self._request(ask))

    def write(self, texts: Texts, pairs: Pairs, ask: Ask) -> list[list[Candidate]]:
        """Write candidates of texts; those share a batch whose prompts, and longest answers, have the same length.

        CTranslate2's beam search for a prompt depends on shorter prompts in its batch.
        """
        prompted, request = [self._prompted(text, ask) for text in texts], self._request(ask)
        limits = [request.get("max_new_tokens", most) for _, most in prompted]
        alike: dict[tuple[int, int], list[int]] = {}
        for row, limit in enumerate(limits):
            alike.setdefault((limit, len(prompted[row][0])), []).append(row)
        found: list[list[Candidate]] = [[] for _ in texts]
        for (limit, _), rows in alike.items():
            ids = [prompted[row][0] for row in rows]
            _, shared = self._beginning(ids, ask.strength)
            options = {**request, "max_new_tokens": limit}
            written = self.generate(ids, shared, self.ends, ask.batch_size, **options)
            for row, group in zip(rows, written, strict=True):
                found[row] = [one for answer in group for one in self._read_answer(texts[row], limit, *answer)]
        return found

    def generate(
        self, prompts: Sequence[list[int]], shared: int, ends: list[int], batch_size: int, **generate_kwargs: Any
    ) -> list[list[tuple[list[int], float]]]:
        """Several answers to each prompt, the likeliest first: tokens, and their mean log-probability in nats.

        The end token is the last one, unless an answer was cut off.

        Args:
            shared: How many first tokens all prompts share; they are read once.
            ends: The tokens that end an answer.
            generate_kwargs: Arguments of `generate()`.

        Raises:
            InputError: One of them asks for what CTranslate2 does not do.
        """
        options = {name.replace("decoding_", ""): one for name, one in self._translate(generate_kwargs).items()}
        tokens = [self.tokenizer.convert_ids_to_tokens(row) for row in prompts]
        results = self.converted.generate_batch(
            [row[shared:] for row in tokens],
            static_prompt=tokens[0][:shared] or None,
            include_prompt_in_result=False,
            end_token=ends or None,
            return_end_token=True,
            return_scores=True,
            max_batch_size=batch_size,
            **options,
        )
        # Beam search divides the sum by a power of the length.
        power = options.get("length_penalty", 1) - 1
        return [
            [(ids, score * len(ids) ** power) for ids, score in zip(one.sequences_ids, one.scores, strict=True)]
            for one in results
        ]

    def log_probs(self, rows: Sequence[list[int]]) -> list[list[float]]:
        """The log-probability in nats of each token of each row, except the first, given the previous ones."""
        tokens = [self.tokenizer.convert_ids_to_tokens(row) for row in rows]
        scored = self.converted.score_batch(
            tokens, max_batch_size=MOST_TOKENS, batch_type="tokens", max_input_length=0
        )
        return [one.log_probs for one in scored]

    def _score(self, prompts: list[list[int]], answers: list[list[int]]) -> list[float]:
        rows = self.log_probs([prompt + answer for prompt, answer in zip(prompts, answers, strict=True)])
        means = zip(rows, map(len, answers), strict=True)
        return [sum(row[-length:]) / length if length else 0.0 for row, length in means]


def _convert(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, compute_type: str) -> Path:
    """The cached folder with the converted model, converted on first use."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    hashed = xxh3_64(f"{ctranslate2.__version__} {compute_type}".encode())
    for part in _bytes_of(model, tokenizer):
        hashed.update(part)
    folder = Path(HF_HOME) / "hf_paraphrase" / "ctranslate2" / hashed.hexdigest()

    def write(empty: Path) -> None:
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            tokenizer.save_pretrained(saved)
            config = Path(saved, "config.json")
            values = CONFIG.get(model.config.model_type, {}) | json.loads(config.read_text(encoding="utf-8"))
            config.write_text(json.dumps(values), encoding="utf-8")
            TransformersConverter(saved).convert(str(empty), quantization=compute_type, force=True)
        # Its reader insists on these marks; those that a tokenizer lacks are never used.
        config = empty / "config.json"
        values = json.loads(config.read_text(encoding="utf-8"))
        for name in ("bos_token", "unk_token"):
            values[name] = values.get(name) or tokenizer.eos_token
        config.write_text(json.dumps(values), encoding="utf-8")

    make_once(folder, write)
    return folder


def _bytes_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Iterator[Any]:
    config = model.config.to_diff_dict()
    yield json.dumps({name: config[name] for name in sorted(config.keys() - WRITTEN_BY_SAVING)}, default=str).encode()
    yield json.dumps(sorted(tokenizer.get_vocab().items())).encode()
    for name, tensor in model.state_dict().items():
        yield name.encode()
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
