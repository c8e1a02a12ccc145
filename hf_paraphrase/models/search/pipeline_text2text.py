from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteria, StoppingCriteriaList
from transformers.pipelines.pt_utils import KeyDataset
from transformers.tokenization_utils_base import TruncationStrategy

from ..layers.portable import can
from ..layers.products import prepacked
from ..text.encoded_inputs import find_control, has_words
from ..text.surface import drop_invisible
from ..text.surface import restore_surface as restore
from .batch_writing import Sequences, decode, encode, generate
from .generation_request import GenerationRequest, check_arguments_of_a_text, find_decoding, task_parameters
from .pipeline_checks import (
    TextWithPair,
    check_argument_names,
    check_arguments,
    check_each_text,
    check_length,
    check_model,
    check_pairs,
    check_text,
    check_tokenizer,
    find_pairs,
    load_retriever,
    plain_number,
    read_array,
    warn_of_length,
)

# Texts of a stream whose pairs are found together.
TEXTS_AT_ONCE = 256
# What a checkpoint may set for the task.
CHOICE = ("num_candidates", "select")
# Per-step outputs of `generate()`, which records of texts cannot hold.
STEP_OUTPUTS = ("output_logits", "output_attentions", "output_hidden_states")


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
    prefix in the model's config (`prefix`, or the task's in `task_specific_params`) is prepended to every text.

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
        ValueError: The model is not an encoder-decoder, or has no tokenizer.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prefix: str

    # The tokenizer is optional for `pipeline()`, whose own error would not say what to do; `__init__` does.
    _load_processor = _load_image_processor = _load_video_processor = _load_feature_extractor = False

    # The base class offers to merge generation parameters too, but how it does has changed between releases, and this
    # file travels with checkpoints to machines with any of them.
    default_parameters = {"max_new_tokens": 256, "num_beams": 4}

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        task: str = "text2text-generation",
        **kwargs: Any,
    ):
        check_model(model)
        check_tokenizer(tokenizer, model)
        super().__init__(model=model, tokenizer=tokenizer, task=task, **kwargs)
        self.retriever = None
        self.task_parameters = task_parameters(model, task)
        self.prefix = self.task_parameters.pop("prefix")
        stages = self._sanitize_parameters(**self.task_parameters)
        self._preprocess_params = {**stages[0], **self._preprocess_params}
        self._postprocess_params = {**stages[2], **self._postprocess_params}

    def __call__(
        self,
        inputs: str | Sequence[str] | Dataset | Iterator[str],
        *,
        batch_size: int | None = None,
        num_workers: int | None = None,
        **kwargs: Any,
    ) -> list | Iterable:
        """Generate text from one or several texts.

        Args:
            inputs: A text, a list (or column, array, Series) of texts, a torch dataset of texts such as
                `KeyDataset(data, "source")`, or a generator of texts.
            batch_size: Texts that the model reads at a time. The results do not depend on it, but for samples without
                a `seed`, which are drawn a batch at a time.
            num_workers: Processes that encode texts ahead; 0 by default.
            truncation: Cut texts longer than the tokenizer's `model_max_length`, as its `truncation` argument does.
            return_text: Return texts, the default.
            return_tensors: Return token ids instead.
            clean_up_tokenization_spaces: Join punctuation to words; by default as the tokenizer is set.
            stop_sequence: Stop generation after this text, which is kept in the output.
            num_neighbors: For a model that edits by retrieved pairs: how many of the nearest to use, each for a
                paraphrase of its own; 1 by default.
            retrieved: Pairs (sentence, its paraphrase) to use for every text, instead of the nearest.
            return_retrieved: Also return the pair, as `retrieved_source` and `retrieved_target`.
            retriever: A `ParaphraseRetriever` to use instead of the checkpoint's.
            num_candidates: Paraphrases to generate (by each pair, where there are pairs), of which one is returned.
            select: How it is chosen: "score", the default, takes the likeliest, "different" the likeliest with other
                words than the text, "jaccard" the one most like the text, "mbr" the one with which the others agree
                most (minimum Bayes risk, best among samples), "embedding" the one nearest in meaning and "matcher" the
                one of which `matcher` is most sure (both of which need this package, but for "embedding" and a model
                that embeds sentences itself, whose `paraphrase` then also takes `temperature`, `noise` and `seed`); or
                a function from texts and lists of candidates to places. A choice that the checkpoint's config sets for
                this task holds where the call asks for one text of a search that has so many.
            matcher: The sentence-pair model for it: a folder, a Hub repository, or a text-classification pipeline,
                which is not reloaded in every call.
            decoding: "beam", the default; "diverse_beam", with `num_beam_groups` and `diversity_penalty`; "dips", with
                `fidelity` and `candidates_per_beam`; both with `exclude_source`; or a function that
                `generate(custom_generate=…)` takes. The beams are as many as `num_return_sequences` at least.
            replace_unknown: Let the model write the mark of unknown words, and put the word of the text that it
                attended to most in the place of each (Jean et al. 2015), in the case in which it stands there;
                and put the rare words of the text in the place of wrong copies (Duraimrugan for Duraimurugan). For
                models that attend to words, which all of transformers' do, with a fast tokenizer.
            restore_surface: Restore case and spacing of ordinary English in outputs that are lower-case or tokenised;
                other text is unchanged.
            strength: For a model with control tokens: how freely to paraphrase, from 0 (close to the text) to 1. By
                default the `default_strength` of its config; without one, no control token is used.
            output_scores: Also return `score`: the logarithm of the sequence's probability over its length to the
                power of `length_penalty`, as beam search ranks by; None for a text without words.
            seed: With `do_sample=True`: the samples of a text depend on it and the text alone, not on the texts beside
                it, so that equal texts get equal samples. Needs this package.
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
        inputs = read_array(inputs)
        if isinstance(inputs, Mapping) or not (hasattr(inputs, "__iter__") or hasattr(inputs, "__getitem__")):
            check_text(inputs, "the input of the pipeline")
        check_arguments({"batch_size": batch_size})
        asked = self._forward_params | self._sanitize_parameters(**kwargs)[1]
        if self._asks_for_all(asked | kwargs):
            kwargs, asked = ({**dict.fromkeys(CHOICE), **given} for given in (kwargs, asked))
        request = self._request(asked)
        run = partial(super().__call__, batch_size=plain_number(batch_size), num_workers=num_workers, **kwargs)
        is_one = isinstance(inputs, str) or (isinstance(inputs, Sequence) and len(inputs) == 1)
        check_arguments_of_a_text(request.parameters, 1 if is_one else 2)
        if isinstance(inputs, Sequence) and not isinstance(inputs, str):
            with prepacked(self.model):  # once for all batches
                return flatten(self._paraphrase(list(inputs), request, run))
        asked_of_pairs = request.asked_of_pairs() or can(self.model.config, "reads_pairs")
        if request.num_candidates is None and not asked_of_pairs:
            return iter(()) if isinstance(inputs, KeyDataset) and not len(inputs) else run(inputs)
        if isinstance(inputs, str):
            return self._paraphrase([inputs], request, run)[0]
        return self._paraphrase_in_parts(iter(inputs), request, run)

    def _asks_for_all(self, asked: Mapping[str, Any]) -> bool:
        """Whether a call wants what its search finds, of which the checkpoint's own choice would keep one."""
        enough = asked.get("num_candidates") or self.task_parameters.get("num_candidates") or 1
        too_narrow = (asked.get("num_beams") or enough) < enough
        return too_narrow or any(asked.get(name) for name in ("num_return_sequences", "return_tensors", "do_sample"))

    def _request(self, asked: dict[str, Any]) -> GenerationRequest:
        """Add what only the pipeline knows; a `generation_config` in the call is used as it is."""
        task = self.task_parameters if asked.get("generation_config") is None else {}
        return GenerationRequest.from_kwargs(**{**task, **asked}, defaults=self.default_parameters)

    def _paraphrase_in_parts(
        self, texts: Iterator[str], request: GenerationRequest, run: partial
    ) -> Iterator[list[dict[str, Any]]]:
        while part := list(islice(texts, TEXTS_AT_ONCE)):
            yield from self._paraphrase(part, request, run)

    def _paraphrase(self, texts: list[str], request: GenerationRequest, run: partial) -> list[list[dict[str, Any]]]:
        """Find the pairs of all texts at once, run the model by each pair, and choose among what it wrote."""
        check_each_text(texts)
        if not texts:
            return []
        pairs = self._pairs(texts, request)
        if pairs is None:
            return self._choose(texts, request, run)
        items = [TextWithPair(text, *pair) for text, group in zip(texts, pairs, strict=True) for pair in group]
        records = self._choose(items, request, run)
        if request.return_retrieved:
            named = [dict(zip(TextWithPair._fields[1:], item[1:], strict=True)) for item in items]
            records = [[record | pair for record in group] for pair, group in zip(named, records, strict=True)]
        in_order = iter(records)
        return [[record for written in islice(in_order, len(group)) for record in written] for group in pairs]

    def _pairs(self, texts: list[str], request: GenerationRequest) -> list[list[tuple[str, str]]] | None:
        if not can(self.model.config, "reads_pairs"):
            for name in request.asked_of_pairs():
                raise ValueError(f"`{name}`: a {type(self.model).__name__} edits by no retrieved pair")
            return None
        if request.retrieved is not None:
            return [check_pairs(request.retrieved)] * len(texts)
        retriever = request.retriever or self.retriever
        if retriever is None:
            retriever = self.retriever = load_retriever(self.model)
        return find_pairs(retriever, texts, request.num_neighbors or 1)

    def _choose(
        self, items: list[str] | list[TextWithPair], request: GenerationRequest, run: partial
    ) -> list[list[dict[str, Any]]]:
        """Run the model, and of candidates keep the one that is chosen."""
        if request.num_candidates is None:
            return run(items)
        if run.keywords.get("num_return_sequences", 1) != 1 or run.keywords.get("return_tensors"):
            raise ValueError(
                "`num_candidates` returns one text: leave `num_return_sequences` and `return_tensors` out"
            )
        texts = [item.text if isinstance(item, TextWithPair) else item for item in items]
        if request.select == "embedding" and can(self.model.config, "embeds_sentences"):
            return self._nearest_paraphrases(texts, request.num_candidates, run.keywords)
        records = run(items)
        places = request.choose(texts, [[record["generated_text"] for record in group] for group in records])
        return [[group[place]] for group, place in zip(records, places, strict=True)]

    def _nearest_paraphrases(self, texts: list[str], count: int, kwargs: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """By a model that embeds sentences itself: the nearest candidate that is not a copy, as `paraphrase` ranks."""
        known = ("batch_size", "num_workers", "num_candidates", "select")
        kwargs = {name: value for name, value in kwargs.items() if name not in known and value is not None}
        is_restored = kwargs.pop("restore_surface", False)
        unknown = kwargs.keys() - {"temperature", "noise", "seed", "max_new_tokens"}
        if unknown:
            raise ValueError(
                f"`{sorted(unknown)[0]}`: a {type(self.model).__name__} that selects by embedding takes "
                "`temperature`, `noise`, `seed`, `max_new_tokens` and `restore_surface`"
            )
        groups = cast(Any, self.model).paraphrase(
            [self.prefix + drop_invisible(text) for text in texts], self.tokenizer, count, **kwargs
        )
        chosen = [next((c.text for c in group if not c.is_copy), group[0].text if group else "") for group in groups]
        if is_restored:
            chosen = list(map(restore, chosen, texts))
        return [[{"generated_text": text}] for text in chosen]

    def _sanitize_parameters(
        self,
        truncation: bool | str | None = None,
        return_text: bool | None = None,
        return_tensors: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
        stop_sequence: str | None = None,
        decoding: str | Callable | None = None,
        replace_unknown: bool | None = None,
        restore_surface: bool | None = None,
        strength: float | None = None,
        **generate_kwargs: Any,
    ) -> tuple[dict, dict, dict]:
        asked = {"return_text": return_text, "return_tensors": return_tensors, "stop_sequence": stop_sequence}
        check_arguments({**asked, "replace_unknown": replace_unknown, "restore_surface": restore_surface})
        check_arguments(generate_kwargs)
        own = {*signature(self._sanitize_parameters).parameters, *(one.name for one in fields(GenerationRequest))}
        check_argument_names(generate_kwargs, own, self.model)
        strategies = [strategy.value for strategy in TruncationStrategy]
        if truncation is not None and truncation not in (True, False, *strategies):
            raise ValueError(f"`truncation` must be True, False or one of {', '.join(strategies)}, not {truncation!r}")
        if return_text and return_tensors:
            raise ValueError("ask for either `return_text` or `return_tensors`, not both")
        preprocess: dict[str, Any] = {}
        postprocess: dict[str, Any] = {}
        if truncation is not None:
            preprocess["truncation"] = truncation
        if return_text or return_tensors is not None:
            postprocess["return_tensors"] = bool(return_tensors)
        if clean_up_tokenization_spaces is not None:
            postprocess["clean_up_tokenization_spaces"] = clean_up_tokenization_spaces
        if stop_sequence is not None:
            criteria = [*(generate_kwargs.get("stopping_criteria") or ()), EndsWith(stop_sequence, self.tokenizer)]
            generate_kwargs["stopping_criteria"] = StoppingCriteriaList(criteria)
        config = generate_kwargs.get("generation_config")
        if config is not None or "output_scores" in generate_kwargs:
            postprocess["return_scores"] = generate_kwargs.get("output_scores", config and config.output_scores)
        for name in STEP_OUTPUTS:
            if generate_kwargs.get(name):
                raise ValueError(
                    f"`{name}`: the pipeline returns texts; call `model.generate(…, return_dict_in_generate=True)`"
                )
        if replace_unknown is not None:
            preprocess["replace_unknown"] = generate_kwargs["replace_unknown"] = replace_unknown
        if restore_surface is not None:
            postprocess["restore_surface"] = generate_kwargs["restore_surface"] = restore_surface
        if strength is not None:
            find_control(self.model.config, self.tokenizer, strength)
            preprocess["strength"] = generate_kwargs["strength"] = strength
        if decoding is not None:
            find_decoding(decoding)
            generate_kwargs["decoding"] = decoding
        return preprocess, generate_kwargs, postprocess

    def preprocess(
        self,
        text: str | TextWithPair,
        truncation: bool | str = False,
        replace_unknown: bool = False,
        strength: float | None = None,
    ) -> dict[str, Any]:
        pairs = None
        if isinstance(text, TextWithPair):
            text, source, target = text
            pairs = [(source, target)]
        check_text(text, "an input of the pipeline")
        text = drop_invisible(text)
        positions = getattr(self.model.config, "max_position_embeddings", None)
        limit = min(self.tokenizer.model_max_length, positions) if truncation and positions else None
        batch = encode(
            self.model,
            self.tokenizer,
            [self.prefix + text],
            pairs,
            replace_unknown=replace_unknown,
            truncation=truncation,
            max_length=limit,
            strength=strength,
        )
        ids = batch.inputs["input_ids"]
        # The tokenizer's own warning would come with every model, whether a long text is wrong or not.
        warn_of_length(ids.shape[1], self.model)
        inputs, known = dict(batch.inputs), tuple(column[0] for column in batch[1:])
        has_control = find_control(self.model.config, self.tokenizer, strength) is not None
        blank = not text.strip() or not has_words(ids[:, has_control:], self.tokenizer)
        if blank:  # never read, but a tokenizer may have made no token at all, which cannot be put in a batch
            inputs = {name: torch.zeros(1, 1, dtype=torch.long) for name in inputs}
        return {**inputs, "blank": torch.tensor([blank]), "known": known, "text": text}

    def _forward(self, model_inputs: dict[str, Any], **asked: Any) -> dict[str, Any]:
        worded = ~model_inputs.pop("blank")
        kept = {name: model_inputs.pop(name) for name in ("known", "text")}
        request = self._request(asked)
        if worded.all():
            return self._generate(model_inputs, request)._asdict() | kept
        if worded.any():
            found = self._generate({name: tensor[worded] for name, tensor in model_inputs.items()}, request)
        else:
            found = self._write_nothing(request)
        # What is not shown to the model gets the ids of an empty text.
        _, returned, length = found.ids.shape
        empty = self._empty_text(length).to(found.ids).expand(returned, length)
        fills = (empty, torch.full_like(empty, -1), *torch.full((2, returned), torch.nan))
        filled = [fill.repeat(len(worded), *[1] * fill.dim()) for fill in fills]
        for part, whole in zip(found, filled, strict=True):
            whole[worded.to(whole.device)] = part
        return Sequences(*filled)._asdict() | kept

    def _generate(self, inputs: dict[str, Any], request: GenerationRequest) -> Sequences:
        try:
            return generate(self.model, self.tokenizer, inputs, request)
        except IndexError as error:
            check_length(inputs["input_ids"].shape[1], self.model, error)
            raise

    def _write_nothing(self, request: GenerationRequest) -> Sequences:
        streamer = request.generate_kwargs(self.model, self.tokenizer).get("streamer")
        if streamer is not None:
            streamer.end()  # whoever reads the stream is waiting for it
        ids, scores = torch.empty(0, request.count_outputs(self.model), 2, dtype=torch.long), torch.empty(0, 1)
        return Sequences(ids, ids, scores, scores)

    def postprocess(
        self,
        model_outputs: dict[str, Any],
        return_tensors: bool = False,
        return_scores: bool = False,
        restore_surface: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[dict[str, Any]]:
        (ids,), (attended,) = (model_outputs[name] for name in ("ids", "attended"))
        if return_tensors:
            records: list[dict[str, Any]] = [{"generated_token_ids": row} for row in ids]
        else:
            options: dict[str, Any] = {
                "clean_up_tokenization_spaces": clean_up_tokenization_spaces,
                "restore_from": model_outputs["text"] if restore_surface else None,
            }
            rows = zip(ids.tolist(), attended.tolist(), strict=True)
            texts = [decode(self.tokenizer, *row, *model_outputs["known"], **options) for row in rows]
            records = [{"generated_text": text} for text in texts]
        if return_scores:
            (scores,) = model_outputs["scores"].tolist()
            for record, score in zip(records, scores, strict=True):
                record["score"] = None if math.isnan(score) else score
        return records

    def _empty_text(self, length: int) -> Tensor:
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

    `generate()` has `stop_strings` for that, but it does not take word-level tokenizers (transformers 5.24).
    """

    def __init__(self, text: str, tokenizer: PreTrainedTokenizerBase):
        self.ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"][0]
        if not len(self.ids):
            raise ValueError(f"`stop_sequence` must have at least one token, but {text!r} has none")

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        length = len(self.ids)
        if input_ids.shape[1] < length:
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        return (input_ids[:, -length:] == self.ids.to(input_ids.device)).all(dim=1)
