from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import (
    Pipeline,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.pipelines.pt_utils import KeyDataset
from transformers.utils import logging

from .decodings import asks_for_groups, find_decoding
from .diverse_beam_search import diverse_beam_search
from .embedding_paraphraser import embeds_sentences
from .outside_words import OpenTokenizer, copies_words, decode_with_words
from .retrieved_pairs import TextWithPair, choose, find_pairs, load_retriever, reads_pairs
from .sequence_scores import sequence_scores

__all__ = ["Text2TextGenerationPipeline"]

# Texts of a stream whose pairs are found together.
TEXTS_AT_ONCE = 256
# What `generate()` can return of every step, and a text in a list of records has no place for.
OF_EVERY_STEP = ("output_logits", "output_attentions", "output_hidden_states")

logger = logging.get_logger(__name__)


class Text2TextGenerationPipeline(Pipeline):
    """Generate text from text with an encoder-decoder, as the pipeline of this name in transformers 4 did.

    ```python
    pipe = pipeline("text2text-generation", model=path)
    pipe("How do I learn faster?")                           # [{"generated_text": …}]
    pipe("How do I learn faster?", num_return_sequences=3)   # three such dicts
    pipe(["How do I learn faster?", "Why is it so?"], batch_size=8)
    ```

    It works with any model of `AutoModelForSeq2SeqLM`. Where neither the call nor the model's generation config says
    otherwise, it generates at most 256 tokens with 4 beams; a `generation_config` in the call is used as it is. A
    prefix in the model's config (`prefix`, or that of the task in `task_specific_params`) is put before every text.

    A text without words (empty, or white space alone) gives an empty text and is not shown to the model, so that one
    blank line does not end a long run. A text longer than the tokenizer's `model_max_length` is passed on whole, with
    a warning if the model has no positions for it; `truncation=True` cuts it.

    A model that edits by retrieved pairs (FSET) gets them from the retriever saved with its checkpoint, in the
    subfolder `retriever`; that needs this package. `num_neighbors=3` gives one paraphrase by each of the three nearest
    pairs, and `retrieved=[(sentence, paraphrase)]` replaces them:

    ```python
    pipe("How do I learn faster?", num_neighbors=3, return_retrieved=True)
    pipe("How do I learn faster?", num_candidates=5, select="jaccard")    # for every model
    ```

    Paraphrases that differ come from `decoding="diverse_beam"` (Vijayakumar et al. 2016) and `decoding="dips"` (Kumar
    et al. 2019), with every model:

    ```python
    pipe("How do I learn faster?", decoding="diverse_beam", num_return_sequences=5, diversity_penalty=1.0)
    ```

    `num_beam_groups` and `diversity_penalty` ask for the former by themselves, in the call or in the checkpoint's
    generation config, as they did in transformers 4.

    Args:
        model: An encoder-decoder that can generate.
        tokenizer: Its tokenizer.
        kwargs: Arguments of every pipeline (`batch_size`, `device` …) and those of `__call__`, which then apply to
            every call that does not give its own.

    Raises:
        ValueError: The model is no encoder-decoder, or there is no tokenizer for it.
    """

    # Optional for `pipeline()`, whose own error would not say what to do; `__init__` does.
    _load_tokenizer = None
    _load_processor = False
    _load_image_processor = False
    _load_video_processor = False
    _load_feature_extractor = False

    # The base class offers to merge generation parameters too, but how it does has changed between releases, and this
    # file travels with checkpoints to machines with any of them.
    default_parameters = {"max_new_tokens": 256, "num_beams": 4}
    # Arguments of `__call__` that say what is generated for a text, and what of it is returned.
    choices = ("num_neighbors", "retrieved", "return_retrieved", "retriever", "num_candidates", "select", "matcher")

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        task: str = "text2text-generation",
        **kwargs: Any,
    ):
        check_model(model)
        check_tokenizer(tokenizer, model)
        self.default_choices = self._take_choices(kwargs)
        super().__init__(model=model, tokenizer=tokenizer, task=task, **kwargs)
        self.retriever = None
        # transformers 5 reads neither field any more, but the configs of older checkpoints have them.
        parameters = dict((getattr(model.config, "task_specific_params", None) or {}).get(task, {}))
        self.prefix = parameters.pop("prefix", None) or getattr(model.config, "prefix", None) or ""
        self.task_parameters = parameters

    def __call__(self, inputs: str | Sequence[str] | Dataset | Iterator[str], **kwargs: Any) -> list | Iterable:
        """Generate text from one or several texts.

        Args:
            inputs: A text, a list (or column) of texts, a torch dataset of texts such as `KeyDataset(data, "source")`,
                or a generator of texts.
            batch_size: Texts that the model reads at a time. The results do not depend on it.
            truncation: Cut texts longer than the tokenizer's `model_max_length`, as its `truncation` argument does.
            return_text: Return texts, the default.
            return_tensors: Return token ids instead.
            clean_up_tokenization_spaces: Join punctuation to words; by default as the tokenizer is set.
            stop_sequence: Stop a text where its tokens end in those of this one, which stays in the text.
            num_neighbors: For a model that edits by retrieved pairs: how many of the nearest to use, each for a
                paraphrase of its own; 1 by default.
            retrieved: Pairs (sentence, its paraphrase) to use for every text, in place of the nearest.
            return_retrieved: Also return the pair, as `retrieved_source` and `retrieved_target`.
            retriever: A `ParaphraseRetriever` to ask in place of the checkpoint's.
            num_candidates: Paraphrases to generate (by each pair, where there are pairs), of which one is returned.
            select: How it is chosen: "score", the default, takes the likeliest, "jaccard" the one most like the text,
                "embedding" the one nearest in meaning and "matcher" the one of which `matcher` is most sure (both of
                which need this package, but for "embedding" and a model that embeds sentences itself, whose
                `paraphrase` then also takes `temperature`, `noise` and `seed`); or a function from texts and lists of
                candidates to places.
            matcher: A model of sentence pairs for it: a folder, a Hub repository, or a text-classification pipeline,
                which is not loaded anew in every call.
            decoding: "beam", the default; "diverse_beam", with `num_beam_groups` and `diversity_penalty`; "dips", with
                `fidelity` and `candidates_per_beam`; both with `exclude_source`; or a function that
                `generate(custom_generate=…)` takes. The beams are as many as `num_return_sequences` at least.
            output_scores: Also return `score`: the logarithm of the sequence's probability over its length to the
                power of `length_penalty`, as beam search ranks by; None for a text without words.
            kwargs: Arguments of `generate()`: `num_beams`, `num_return_sequences`, `max_new_tokens`,
                `generation_config`, `streamer` (which needs `num_beams=1`) and so on.

        Returns:
            For one text, a list with a dict for each returned sequence: `{"generated_text": str}`, or
            `{"generated_token_ids": LongTensor}` of shape `(length,)`, padded to the longest of its batch, with
            `return_tensors=True`; and what was asked for. For a list, one such list a text, flattened to one dict a
            text where each has one sequence. For a dataset or a generator, an iterator over one list a text, which
            works as it is read.

        Raises:
            ValueError: An input is not a text, or something is asked for that has no place in the result; the message
                says which.
        """
        choices = self.default_choices | self._take_choices(kwargs)
        choices = {name: value for name, value in choices.items() if value is not None}
        check_choices(choices)
        if choices or reads_pairs(self.model):
            return self._call_with_choices(inputs, choices, kwargs)
        if isinstance(inputs, Sequence) and not isinstance(inputs, str):
            return self._call_on_list(list(inputs), **kwargs)
        if isinstance(inputs, KeyDataset) and len(inputs) == 0:
            return iter(())
        return super().__call__(inputs, **kwargs)

    def _call_on_list(self, texts: list[str], **kwargs: Any) -> list:
        check_each_text(texts)
        if not texts:
            return []
        records = super().__call__(texts, **kwargs)
        return flatten(records)

    def _take_choices(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {name: kwargs.pop(name) for name in self.choices if name in kwargs}

    def _call_with_choices(self, inputs: Any, choices: dict[str, Any], kwargs: dict[str, Any]) -> list | Iterator:
        """Answer a call with pairs or candidates: lists at once, all else in parts as it is read."""
        if isinstance(inputs, str):
            return self._paraphrase([inputs], choices, kwargs)[0]
        if isinstance(inputs, Sequence):
            return flatten(self._paraphrase(list(inputs), choices, kwargs))
        return self._paraphrase_in_parts(iter(inputs), choices, kwargs)

    def _paraphrase_in_parts(
        self, texts: Iterator[str], choices: dict[str, Any], kwargs: dict[str, Any]
    ) -> Iterator[list[dict[str, Any]]]:
        while part := list(islice(texts, TEXTS_AT_ONCE)):
            yield from self._paraphrase(part, choices, kwargs)

    def _paraphrase(
        self, texts: list[str], choices: dict[str, Any], kwargs: dict[str, Any]
    ) -> list[list[dict[str, Any]]]:
        """Find the pairs of all texts at once, run the model by each pair, and choose among what it wrote."""
        check_each_text(texts)
        if not texts:
            return []
        pairs = self._pairs(texts, choices)
        if pairs is None:
            items, counts = texts, [1] * len(texts)
        else:
            items = [TextWithPair(text, *pair) for text, group in zip(texts, pairs, strict=True) for pair in group]
            counts = [len(group) for group in pairs]
        records = self._generate_candidates(items, choices, kwargs)
        if choices.get("return_retrieved"):
            records = [
                [
                    {**record, "retrieved_source": item.retrieved_source, "retrieved_target": item.retrieved_target}
                    for record in group
                ]
                for item, group in zip(items, records, strict=True)
            ]
        records = iter(records)
        return [[record for group in islice(records, count) for record in group] for count in counts]

    def _pairs(self, texts: list[str], choices: dict[str, Any]) -> list[list[tuple[str, str]]] | None:
        if not reads_pairs(self.model):
            wrong = choices.keys() & {"num_neighbors", "retrieved", "return_retrieved", "retriever"}
            if wrong:
                raise ValueError(f"`{sorted(wrong)[0]}`: a {type(self.model).__name__} edits by no retrieved pair")
            return None
        retrieved = choices.get("retrieved")
        if retrieved is not None:
            return [check_pairs(retrieved)] * len(texts)
        retriever = choices.get("retriever") or self.retriever
        if retriever is None:
            retriever = self.retriever = load_retriever(self.model)
        return find_pairs(retriever, texts, choices.get("num_neighbors", 1))

    def _generate_candidates(
        self, items: list[str] | list[TextWithPair], choices: dict[str, Any], kwargs: dict[str, Any]
    ) -> list[list[dict[str, Any]]]:
        count, rule = choices.get("num_candidates"), choices.get("select", "score")
        if count is None:
            if choices.keys() & {"select", "matcher"}:
                raise ValueError("`select` chooses among `num_candidates` paraphrases: say how many")
            return super().__call__(items, **kwargs)
        if kwargs.get("num_return_sequences", 1) != 1 or kwargs.get("return_tensors"):
            raise ValueError(
                "`num_candidates` returns one text: leave `num_return_sequences` and `return_tensors` out"
            )
        if rule == "embedding" and embeds_sentences(self.model):
            return self._nearest_paraphrases(items, count, kwargs)
        kwargs = {**kwargs, "num_return_sequences": count}
        if not kwargs.get("do_sample"):
            kwargs["num_beams"] = max(count, kwargs.get("num_beams") or self.model.generation_config.num_beams or 1)
        records = super().__call__(items, **kwargs)
        texts = [item if isinstance(item, str) else item.text for item in items]
        candidates = [[record["generated_text"] for record in group] for group in records]
        places = choose(rule, texts, candidates, choices.get("matcher"))
        return [[group[place]] for group, place in zip(records, places, strict=True)]

    def _nearest_paraphrases(self, texts: list[str], count: int, kwargs: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """By a model that embeds sentences itself: the nearest candidate that is no copy, as `paraphrase` ranks."""
        kwargs = {name: value for name, value in kwargs.items() if name not in ("batch_size", "num_workers")}
        unknown = kwargs.keys() - {"temperature", "noise", "seed", "max_new_tokens"}
        if unknown:
            raise ValueError(
                f"`{sorted(unknown)[0]}`: a {type(self.model).__name__} that selects by embedding takes "
                "`temperature`, `noise`, `seed` and `max_new_tokens`"
            )
        groups = self.model.paraphrase([self.prefix + text for text in texts], self.tokenizer, count, **kwargs)
        chosen = [next((c.text for c in group if not c.is_copy), group[0].text if group else "") for group in groups]
        return [[{"generated_text": text}] for text in chosen]

    def _sanitize_parameters(
        self,
        truncation: bool | str | None = None,
        return_text: bool | None = None,
        return_tensors: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
        stop_sequence: str | None = None,
        decoding: str | Callable | None = None,
        **generate_kwargs: Any,
    ) -> tuple[dict, dict, dict]:
        if return_text and return_tensors:
            raise ValueError("ask for either `return_text` or `return_tensors`, not both")
        preprocess, postprocess = {}, {}
        if truncation is not None:
            preprocess["truncation"] = truncation
        if return_text or return_tensors is not None:
            postprocess["return_tensors"] = bool(return_tensors)
        if clean_up_tokenization_spaces is not None:
            postprocess["clean_up_tokenization_spaces"] = clean_up_tokenization_spaces
        if stop_sequence is not None:
            criteria = generate_kwargs.get("stopping_criteria") or ()
            generate_kwargs["stopping_criteria"] = StoppingCriteriaList(
                [*criteria, EndsWith(stop_sequence, self.tokenizer)]
            )
        config = generate_kwargs.get("generation_config")
        if config is not None or "output_scores" in generate_kwargs:
            postprocess["return_scores"] = generate_kwargs.get("output_scores", config and config.output_scores)
        for name in OF_EVERY_STEP:
            if generate_kwargs.get(name):
                raise ValueError(
                    f"`{name}`: the pipeline returns texts; call `model.generate(…, return_dict_in_generate=True)`"
                )
        if decoding is not None:
            generate_kwargs["custom_generate"] = find_decoding(decoding)
        return preprocess, generate_kwargs, postprocess

    def preprocess(self, text: str | TextWithPair, truncation: bool | str = False) -> dict[str, torch.Tensor]:
        pair: dict[str, str] = {}
        if isinstance(text, TextWithPair):
            text, *sides = text
            pair = dict(zip(("retrieved_source", "retrieved_target"), sides, strict=True))
        check_text(text, "an input of the pipeline")
        # Its own warning comes with every model, whether a long text is wrong or not.
        inputs = dict(self.tokenizer(self.prefix + text, truncation=truncation, return_tensors="pt", verbose=False))
        warn_of_length(inputs["input_ids"].shape[1], self.model)
        # Some tokenizers make them, but no encoder-decoder's `generate()` takes them.
        inputs.pop("token_type_ids", None)
        words = {}
        if pair and copies_words(self.model):
            tokenizer = OpenTokenizer(self.tokenizer, self.model.config.vocab_size)
            sides = tokenizer(list(pair.values()), truncation=truncation, verbose=False)["input_ids"]
            words = tokenizer.words
        else:
            sides = [self.tokenizer(side, truncation=truncation, verbose=False)["input_ids"] for side in pair.values()]
        for name, ids in zip(pair, sides, strict=True):
            ids = torch.tensor([ids], dtype=torch.long)
            inputs |= {f"{name}_ids": ids, f"{name}_mask": torch.ones_like(ids)}
        blank = not text.strip() or not has_words(inputs["input_ids"], self.tokenizer)
        if blank:  # never read, but a tokenizer may have made no token at all, which cannot be put in a batch
            inputs = {name: torch.zeros(1, 1, dtype=torch.long) for name in inputs}
        return {**inputs, "blank": torch.tensor([blank]), "outside_words": words}

    def _forward(self, model_inputs: dict[str, torch.Tensor], **generate_kwargs: Any) -> dict[str, torch.Tensor]:
        worded, words = ~model_inputs.pop("blank"), model_inputs.pop("outside_words")
        generate_kwargs = self._with_defaults(generate_kwargs)
        if worded.any():
            inputs = {name: tensor[worded] for name, tensor in model_inputs.items()}
            sequences, scores = self._generate(inputs, generate_kwargs)
            sequences = sequences.unflatten(0, (int(worded.sum()), -1))
        else:
            sequences, scores = self._generate_nothing(generate_kwargs), None
        _, returned, length = sequences.shape
        output_ids = self._empty_text(length).to(sequences).repeat(len(worded), returned, 1)
        output_ids[worded.to(sequences.device)] = sequences
        all_scores = torch.full((len(worded), returned), torch.nan)
        if scores is not None:
            all_scores[worded.cpu()] = scores.float().cpu().view(-1, returned)
        return {"output_ids": output_ids, "scores": all_scores, "outside_words": words}

    def _generate(
        self, inputs: dict[str, torch.Tensor], generate_kwargs: dict[str, Any]
    ) -> tuple[torch.LongTensor, torch.FloatTensor | None]:
        """The model's sequences, `(texts * sequences a text, length)`, and their scores if they are asked for."""
        config = generate_kwargs.get("generation_config") or self.model.generation_config
        output_scores, length_penalty = (
            generate_kwargs.get(name, getattr(config, name)) for name in ("output_scores", "length_penalty")
        )
        if output_scores:
            generate_kwargs = {**generate_kwargs, "return_dict_in_generate": True}
        outputs = self.model.generate(**inputs, **generate_kwargs)
        if isinstance(outputs, torch.Tensor):
            return outputs, None
        if not output_scores:
            return outputs.sequences, None
        length_penalty = 1.0 if length_penalty is None else length_penalty
        return outputs.sequences, sequence_scores(outputs, length_penalty, self.model.generation_config)

    def postprocess(
        self,
        model_outputs: dict[str, torch.Tensor],
        return_tensors: bool = False,
        return_scores: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[dict[str, Any]]:
        (sequences,) = model_outputs["output_ids"]
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": clean_up_tokenization_spaces}
        words = model_outputs["outside_words"]
        records: list[dict[str, Any]] = [
            {"generated_token_ids": ids}
            if return_tensors
            else {"generated_text": decode_with_words(self.tokenizer, ids.tolist(), words, **options)}
            for ids in sequences
        ]
        if return_scores:
            (scores,) = model_outputs["scores"].tolist()
            for record, score in zip(records, scores, strict=True):
                record["score"] = None if math.isnan(score) else score
        return records

    def _with_defaults(self, generate_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Add what neither the caller nor the model decides; a `generation_config` of the caller decides all."""
        config = generate_kwargs.get("generation_config")
        if config is None:
            generate_kwargs = {**self.task_parameters, **generate_kwargs}
        all_kwargs = {**(config or self.model.generation_config).to_diff_dict(), **generate_kwargs}
        if generate_kwargs.get("custom_generate") is None and asks_for_groups(all_kwargs):
            generate_kwargs = {**generate_kwargs, "custom_generate": diverse_beam_search}
        custom_generate = generate_kwargs.get("custom_generate")
        if custom_generate is not None and generate_kwargs.get("streamer") is not None:
            name = getattr(custom_generate, "__name__", "this decoding")
            raise ValueError(f"`streamer`: {name} knows no word before the whole output")
        if config is not None:
            return generate_kwargs
        defaults = {**self.default_parameters, "pad_token_id": self.tokenizer.pad_token_id}
        if "max_length" in all_kwargs:
            del defaults["max_new_tokens"]
        if custom_generate is not None and "num_beams" not in generate_kwargs:
            usual = all_kwargs.pop("num_beams", self.default_parameters["num_beams"])
            needed, groups = (
                max(usual, generate_kwargs.get("num_return_sequences") or 1),
                all_kwargs.get("num_beam_groups"),
            )
            defaults["num_beams"] = -(-needed // groups) * groups if groups else needed
        return {**{name: value for name, value in defaults.items() if name not in all_kwargs}, **generate_kwargs}

    def _generate_nothing(self, generate_kwargs: dict[str, Any]) -> torch.Tensor:
        """Stand in for `generate()` where a batch has no text to read: `(0, sequences a text, 2)`."""
        if (streamer := generate_kwargs.get("streamer")) is not None:
            streamer.end()  # whoever reads the stream is waiting for it
        config = generate_kwargs.get("generation_config") or self.model.generation_config
        returned = generate_kwargs.get("num_return_sequences") or config.num_return_sequences or 1
        return torch.empty(0, returned, 2, dtype=torch.long)

    def _empty_text(self, length: int) -> torch.Tensor:
        """Return `(length,)` ids as a model would generate them for an empty text: start, end, padding."""
        config, tokenizer = self.model.generation_config, self.tokenizer
        start = config.bos_token_id if config.decoder_start_token_id is None else config.decoder_start_token_id
        pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        ids = [token for token in (start, tokenizer.eos_token_id) if token is not None]
        return torch.tensor((ids + [pad] * length)[:length])


def flatten(groups: list[list[dict[str, Any]]]) -> list:
    """One record a text, where each has one, as transformers 4 returned it."""
    return [record for (record,) in groups] if all(len(group) == 1 for group in groups) else groups


class EndsWith(StoppingCriteria):
    """Stop a sequence that ends in the tokens of a text.

    `generate()` has `stop_strings` for that, but it does not take word-level tokenizers (transformers 5.23).
    """

    def __init__(self, text: str, tokenizer: PreTrainedTokenizerBase):
        self.ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"][0]
        if not len(self.ids):
            raise ValueError(f"`stop_sequence` must have at least one token, but {text!r} has none")

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: Any) -> torch.BoolTensor:
        length = len(self.ids)
        if input_ids.shape[1] < length:
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        return (input_ids[:, -length:] == self.ids.to(input_ids.device)).all(dim=1)


def warn_of_length(length: int, model: PreTrainedModel) -> None:
    """Warn of a text that has more tokens than the model has positions; others a model reads at any length."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and length > limit:
        logger.warning(
            f"a text has {length} tokens, but {type(model).__name__} has positions for {limit}: if reading it fails, "
            "`truncation=True` cuts it"
        )


def has_words(input_ids: torch.LongTensor, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Tell whether there is any token but those that frame and fill a text; an unknown word is a word."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    frame = {getattr(tokenizer, name) for name in names}
    return not frame.issuperset(input_ids.flatten().tolist())


def check_each_text(texts: list[Any]) -> None:
    """Raise ValueError unless all are strings."""
    for index, text in enumerate(texts):
        check_text(text, f"input {index} of the list")


def check_choices(choices: dict[str, Any]) -> None:
    """Raise ValueError where choices contradict each other or ask for less than one."""
    for name in ("num_neighbors", "num_candidates"):
        if choices.get(name, 1) < 1:
            raise ValueError(f"`{name}` must be at least 1, not {choices[name]}")
    if "retrieved" in choices and "num_neighbors" in choices:
        raise ValueError("`num_neighbors` looks pairs up and `retrieved` gives them: pass one of the two")
    if "matcher" in choices and "select" not in choices:
        raise ValueError("`matcher` is asked with `select='matcher'` alone")


def check_pairs(pairs: Any) -> list[tuple[str, str]]:
    """Raise ValueError unless these are pairs of texts with words."""
    if isinstance(pairs, Sequence) and not isinstance(pairs, str) and pairs:
        pairs = [
            tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else (pair,) for pair in pairs
        ]
        if all(len(pair) == 2 and all(isinstance(text, str) and text.strip() for text in pair) for pair in pairs):
            return pairs
    raise ValueError("`retrieved` must be a list of pairs [(sentence, its paraphrase), …], all of them with text")


def check_text(text: Any, name: str) -> None:
    """Raise ValueError unless `text` is a string."""
    if not isinstance(text, str):
        raise ValueError(
            f"{name} is of type {type(text).__name__}, not a string; pass a string, a list of strings, "
            "a `KeyDataset(dataset, column)` or a generator of strings"
        )


def check_model(model: PreTrainedModel) -> None:
    """Raise ValueError unless the model is an encoder-decoder that can generate."""
    if not (model.config.is_encoder_decoder and model.can_generate()):
        raise ValueError(
            f"text2text-generation needs an encoder-decoder model such as T5 or BART, but {type(model).__name__} is "
            'none; for a decoder-only model use `pipeline("text-generation")`'
        )


def check_tokenizer(tokenizer: PreTrainedTokenizerBase | None, model: PreTrainedModel) -> None:
    """Raise ValueError where there is no tokenizer, or one that `AutoTokenizer` made up for a folder without any."""
    fix = "save the one that the model was trained with there (`tokenizer.save_pretrained`), or pass `tokenizer=`"
    if tokenizer is None:
        raise ValueError(
            f"no tokenizer could be loaded from '{model.name_or_path}': {fix}. "
            "If there is one, `AutoTokenizer.from_pretrained` tells why it does not load"
        )
    # For an architecture that it knows, transformers 5 makes one with special tokens alone: every word is unknown.
    folder = Path(tokenizer.name_or_path or "not loaded from a folder")
    files = {"tokenizer_config.json", *tokenizer.vocab_files_names.values()}
    if folder.is_dir() and not any((folder / name).is_file() for name in files):
        raise ValueError(f"'{folder}' has no tokenizer: {fix}")
