"""Texts and pairs as a model reads them, with control tokens and ids for words outside the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import BatchEncoding, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..layers.portable import TASK, can


def check_strength(strength: float | None) -> None:
    """Raise ValueError unless `strength` is None or a number from 0 to 1."""
    is_number = isinstance(strength, int | float) and not isinstance(strength, bool)
    if strength is not None and not (is_number and 0 <= strength <= 1):
        raise ValueError(f"`strength` must be a number from 0 to 1, not {strength!r:.100}")


def control_ids(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The ids of a model's control tokens, from "stay close" to "differ freely"; empty for a model without any."""
    tokens = list(getattr(config, "control_tokens", None) or ())
    return cast(list[int], tokenizer.convert_tokens_to_ids(tokens))


def find_control(
    config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, strength: float | None = None
) -> int | None:
    """Return the id of the control token for a strength; None where nobody names one, and the model runs plain.

    Args:
        config: The model's: `control_tokens` names the tokens, one for each level, and `default_strength` is used
            where `strength` is None.
        strength: From 0 (close to the source) to 1 (as free as possible). Of n levels it asks for level
            `round(strength * (n - 1))`.

    Raises:
        ValueError: The strength is out of range, or the model has no control tokens.

    Source: Bandel et al. 2022, Quality Controlled Paraphrase Generation.
    """
    ids = control_ids(config, tokenizer)
    if strength is not None and not ids:
        raise ValueError(
            f"`strength`: this {config.model_type} has no control tokens; `Paraphraser` moves thresholds instead"
        )
    strength = getattr(config, "default_strength", None) if strength is None else strength
    check_strength(strength)
    if strength is None or not ids:
        return None
    return ids[round(strength * (len(ids) - 1))]


def prepend_control(inputs: MutableMapping[str, Tensor], control: int) -> None:
    """Put a control token before the first token of each text, in place; padding on either side stays outside."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    rows, first = torch.arange(len(ids)), mask.argmax(1)
    for name, values, value in (("input_ids", ids, control), ("attention_mask", mask, 1)):
        # The copied column is padding on the left, or is overwritten.
        inputs[name] = torch.cat([values[:, :1], values], dim=1)
        inputs[name][rows, first] = value


class OpenTokenizer:
    """A tokenizer that gives each unknown word its own id, from `vocab_size` on, in order of appearance.

    A sub-word tokenizer knows every word, and one without offsets (a slow one) cannot say which it did not know: their
    ids stay as they are.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocab_size: int):
        self.tokenizer, self.vocab_size = tokenizer, vocab_size
        self._ids: dict[str, int] = {}

    @property
    def words(self) -> dict[int, str]:
        """The words outside the vocabulary so far, by their ids."""
        return {number: word for word, number in self._ids.items()}

    def __call__(self, texts: Sequence[str], **kwargs: Any) -> dict[str, list[list[int]]]:
        """Encode texts, by the tokenizer's own call; returns `input_ids`, a list for each text."""
        encoded = self.tokenizer(list(texts), **kwargs)
        if encoded.encodings is None or self.tokenizer.unk_token_id is None:
            return {"input_ids": encoded["input_ids"]}
        rows = zip(texts, encoded["input_ids"], encoded.encodings, strict=True)
        return {"input_ids": [self.number(text, ids, encoding.offsets) for text, ids, encoding in rows]}

    def num_special_tokens_to_add(self) -> int:
        """As the tokenizer's own."""
        return self.tokenizer.num_special_tokens_to_add()

    def number(self, text: str, ids: list[int], offsets: list[tuple[int, int]]) -> list[int]:
        """Replace the unknown word's id among those of a text, whose tokens stand at `offsets`."""
        unknown = self.tokenizer.unk_token_id
        if unknown not in ids:
            return ids
        return [
            self._id_of(text[start:end]) if word == unknown else word
            for word, (start, end) in zip(ids, offsets, strict=True)
        ]

    def _id_of(self, word: str) -> int:
        normalizer = self.tokenizer.backend_tokenizer.normalizer
        word = word if normalizer is None else normalizer.normalize_str(word)
        return self._ids.setdefault(word, self.vocab_size + len(self._ids))


def decode_with_words(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], words: Mapping[int, str], **kwargs: Any
) -> str:
    """Decode ids, including those of words outside the vocabulary, `OpenTokenizer.words` of the text copied from."""
    if words.keys().isdisjoint(ids):
        return cast(str, tokenizer.decode(cast(list[int], ids), **kwargs))
    skipped = tokenizer.all_special_ids if kwargs.get("skip_special_tokens") else []
    tokens = [
        words[word] if word in words else cast(str, tokenizer.convert_ids_to_tokens(word))
        for word in ids
        if word not in skipped
    ]
    decoder = tokenizer.backend_tokenizer.decoder
    return " ".join(tokens) if decoder is None else decoder.decode(tokens)


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


def has_words(input_ids: Tensor, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether there is any token besides special ones and padding; unknown words count."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    frame = {getattr(tokenizer, name) for name in names}
    return not frame.issuperset(input_ids.flatten().tolist())
