"""Texts, and the pairs that they are edited by, as a model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import BatchEncoding, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..layers.portable import can
from .control_tokens import control_ids, prepend_control
from .outside_words import OpenTokenizer

__all__ = ["encode_inputs", "has_words", "keep_prefix", "read_prefix", "source_limit"]

TASK = "text2text-generation"

# Where neither the tokenizer nor the model has a limit: memory grows with the length, and some of it with its square.
MOST_TOKENS = 1024


def source_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Default maximum tokens of a text: the minimum of the tokenizer's limit, the model's positions and 1,024.

    A model with control tokens reads one before the text.
    """
    positions = getattr(model.config, "max_position_embeddings", None) or MOST_TOKENS
    return min(tokenizer.model_max_length, positions, MOST_TOKENS) - bool(control_ids(model.config, tokenizer))


def read_prefix(config: PreTrainedConfig, task: str = TASK) -> str:
    """The prefix that a model was trained with, from its config: by task, or for all."""
    parameters = (getattr(config, "task_specific_params", None) or {}).get(task, {})
    return parameters.get("prefix") or getattr(config, "prefix", None) or ""


def keep_prefix(config: PreTrainedConfig, prefix: str) -> None:
    """Write into a config what `read_prefix` is to find there."""
    if read_prefix(config) == prefix:
        return
    of_tasks = dict(getattr(config, "task_specific_params", None) or {})
    config.task_specific_params = of_tasks | {TASK: {**of_tasks.get(TASK, {}), "prefix": prefix}}
    if getattr(config, "prefix", None):
        config.prefix = None


def encode_inputs(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None = None,
    model: PreTrainedModel | None = None,
    truncation: bool | str = False,
    max_length: int | None = None,
    control: int | None = None,
) -> tuple[BatchEncoding, list[dict[int, str]]]:
    """Encode a batch of texts.

    Args:
        tokenizer: Their tokenizer.
        texts: The texts.
        pairs: For each text the pair to edit it by.
        model: What writes. If it copies words, those of a pair, or without pairs of a text, that are outside the
            vocabulary get ids of their own; None to take all of them for unknown words.
        truncation: Of texts and pairs, as the tokenizer takes it.
        max_length: Most tokens of a text that is cut; None for `tokenizer.model_max_length`.
        control: The id of the control token to put before each text (see `find_control`); None for none.

    Returns:
        What the model's forward takes, each `(texts, length)`, and for each text the words outside the vocabulary.
    """
    options = {"truncation": truncation, "max_length": max_length, "verbose": False}
    if model is not None and control_ids(model.config, tokenizer):
        # The name of a control token in a text is text.
        options |= {"split_special_tokens": True, "return_attention_mask": True}
    config = None if model is None else model.config
    positions = getattr(config, "max_position_embeddings", None) if control is not None else None
    if positions and truncation:
        options["max_length"] = min(max_length or tokenizer.model_max_length, positions - 1)
    # One text alone needs no padding token, which not every tokenizer has.
    inputs = tokenizer(list(texts), padding=len(texts) > 1, return_tensors="pt", **options)
    # Some tokenizers make them, but no encoder-decoder's `generate()` takes them.
    inputs.pop("token_type_ids", None)
    copying = model if model is not None and can(model.config, "copies_words") else None
    words: list[dict[int, str]] = [{} for _ in texts]
    if copying is not None and pairs is None:
        words = number_words(tokenizer, texts, inputs, copying)
    if control is not None:
        prepend_control(inputs, control)
    if pairs is None:
        return inputs, words
    tokenizers: list[Any] = [tokenizer] * len(texts)
    if copying is not None:
        tokenizers = [OpenTokenizer(tokenizer, copying.config.vocab_size) for _ in texts]
    encoded = [encode(list(pair), **options)["input_ids"] for encode, pair in zip(tokenizers, pairs, strict=True)]
    for name, ids in zip(("retrieved_source", "retrieved_target"), zip(*encoded, strict=True), strict=True):
        side = tokenizer.pad({"input_ids": list(ids)}, return_attention_mask=True, return_tensors="pt", verbose=False)
        inputs |= {f"{name}_ids": side["input_ids"], f"{name}_mask": side["attention_mask"]}
    return inputs, [{} if copying is None else encode.words for encode in tokenizers]


def number_words(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], inputs: BatchEncoding, model: PreTrainedModel
) -> list[dict[int, str]]:
    """Assign ids to words outside the vocabulary, in place; return the words of each text by id."""
    found = []
    for row, text, encoding in zip(inputs["input_ids"], texts, inputs.encodings or (), strict=inputs.is_fast):
        opened = OpenTokenizer(tokenizer, model.config.vocab_size)
        row.copy_(torch.tensor(opened.number(text, row.tolist(), encoding.offsets)))
        found.append(opened.words)
    return found or [{} for _ in texts]


def has_words(input_ids: torch.Tensor, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether there is any token besides special ones and padding; unknown words count."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    frame = {getattr(tokenizer, name) for name in names}
    return not frame.issuperset(input_ids.flatten().tolist())
