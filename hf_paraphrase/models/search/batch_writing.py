"""Writing a batch of texts, for the pipeline and for batches of a corpus alike: encode, generate, decode, restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from transformers import BatchEncoding, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..layers.layer_weights import input_device
from ..layers.products import prepacked
from ..text.encoded_inputs import decode_with_words, encode_inputs, find_control
from ..text.stand_ins import find_stand_ins, put_back, put_stand_ins
from ..text.surface import restore_surface
from ..text.unknown_words import find_attended, mend_miscopied_words, put_words, read_words_of_source
from .generation_request import DECODINGS, GenerationRequest


def generate_with_scores(
    model: PreTrainedModel, inputs: Mapping[str, Tensor], generate_kwargs: Mapping[str, Any], log_probs: bool = False
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Let a model write, and score it if `output_scores` asks for that.

    With `log_probs` the mean log-probabilities are wanted too, which only our beam searches know. Returns sequences,
    `(texts * sequences a text, length)`, and for each its score and mean log-probability, or None.
    """
    config = generate_kwargs.get("generation_config") or model.generation_config
    output_scores, length_penalty = (
        generate_kwargs.get(name, getattr(config, name)) for name in ("output_scores", "length_penalty")
    )
    is_ours = generate_kwargs.get("custom_generate") in DECODINGS.values()
    if log_probs and is_ours:
        generate_kwargs = {**generate_kwargs, "return_dict_in_generate": True}
    if output_scores:
        # Our searches score what they return without the scores of every step, which nobody reads here.
        needs_steps = not is_ours
        generate_kwargs = {**generate_kwargs, "return_dict_in_generate": True, "output_scores": needs_steps}
    outputs = cast(Any, model).generate(**inputs, **generate_kwargs)
    if isinstance(outputs, Tensor):
        return outputs, None, None
    means = outputs.get("mean_log_probs") if log_probs else None
    scores = outputs.get("sequences_scores") if output_scores else None
    if output_scores and scores is None:
        length_penalty = 1.0 if length_penalty is None else length_penalty
        scores = score_sequences(outputs, length_penalty, model.generation_config)
    return outputs.sequences, scores, means


def score_sequences(outputs: Any, length_penalty: float, config: GenerationConfig) -> Tensor:
    """What beam search would give every sequence that was written without a search, `(sequences,)`.

    `outputs` are those of `generate()`, with `scores`; the logarithm of the probability is divided by the length to
    the power of `length_penalty`; `config` has the ids of end and padding.
    """
    written = outputs.sequences[:, -len(outputs.scores) :]
    steps = zip(outputs.scores, written.split(1, dim=1), strict=True)
    log_probs = torch.cat([scores.float().log_softmax(-1).gather(1, ids) for scores, ids in steps], dim=1)
    ends = torch.as_tensor([] if config.eos_token_id is None else config.eos_token_id, device=written.device)
    is_end = torch.isin(written, ends)
    is_padding = is_end.cumsum(1) > is_end.long()
    if config.pad_token_id is not None:  # as what stopped otherwise is filled up
        is_padding |= ((written == config.pad_token_id) & ~is_end).long().flip(1).cummin(1).values.flip(1).bool()
    return log_probs.masked_fill(is_padding, 0.0).sum(1) / (~is_padding).sum(1) ** length_penalty


class Output(NamedTuple):
    """A text that a model wrote.

    Args:
        text: The text.
        score: The logarithm of its probability over its length to the power of `length_penalty`, 1 by default; None
            unless `output_scores` asks for it, and for a blank source.
        log_prob: The mean log-probability of its tokens, end mark included, by the model alone. None where the search
            does not know it, and where the text is not what the search wrote: cut off, or with a mark dropped or
            replaced. Of a text in which a wrong copy of a word was mended it is that of the copy.
    """

    text: str
    score: float | None = None
    log_prob: float | None = None


class Batch(NamedTuple):
    """Texts as a model reads them.

    Args:
        inputs: What `generate()` takes.
        source_words: The words that the tokens of each text are of, for `replace_unknown`; empty without it.
        outside_words: The words of each text outside the vocabulary, by their ids.
        stand_ins: The words and signs of each text that others stand for, by these.
    """

    inputs: BatchEncoding
    source_words: list[list[str]]
    outside_words: list[dict[int, str]]
    stand_ins: list[dict[str, str]]


class Sequences(NamedTuple):
    """A model's outputs for a batch, in tokens.

    Args:
        ids: `(texts, outputs, length)`.
        attended: The number of the source token that replaces each unknown word, -1 elsewhere, as `ids`.
        scores: Of `Output`, `(texts, outputs)`, nan where unknown.
        log_probs: Of `Output`, `(texts, outputs)`, nan where unknown.
    """

    ids: Tensor
    attended: Tensor
    scores: Tensor
    log_probs: Tensor


def encode(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    replace_unknown: bool = False,
    truncation: bool | str = False,
    max_length: int | None = None,
    strength: float | None = None,
) -> Batch:
    """Encode texts, prefix included, and for each the pair to edit it by.

    Args:
        pairs: For each text a pair, where the model edits by one.
        replace_unknown: Whether the words of the source are needed later.
        max_length: Most tokens of a text that is cut.
        strength: How far outputs are to differ from the text, for a model with control tokens.
    """
    control = find_control(model.config, tokenizer, strength)
    stand_ins = [find_stand_ins(tokenizer, text) for text in texts]
    texts = list(map(put_stand_ins, texts, stand_ins))
    inputs, outside_words = encode_inputs(tokenizer, texts, pairs, model, truncation, max_length, control)
    source_words = read_words_of_source(inputs, texts) if replace_unknown else [[] for _ in texts]
    return Batch(inputs, source_words, outside_words, stand_ins)


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    inputs: Mapping[str, Tensor],
    request: GenerationRequest,
    *,
    log_probs: bool = False,
) -> Sequences:
    """Generate outputs for a request from the `inputs` of a `Batch`, with the mean log-probabilities if asked for."""
    with prepacked(model):
        kwargs = request.generate_kwargs(model, tokenizer)
        ids, *numbers = generate_with_scores(model, inputs, kwargs, log_probs)
    shape = (len(inputs["input_ids"]), -1)
    ids = ids.unflatten(0, shape)
    attended = torch.full_like(ids, -1)
    if request.replace_unknown:
        attended = find_attended(model, inputs, ids, tokenizer)
    unknown = torch.full(ids.shape[:2], torch.nan)
    scores, means = (unknown if part is None else part.float().cpu().view(shape) for part in numbers)
    if numbers[1] is not None:
        ends = torch.as_tensor(model.generation_config.eos_token_id, device=ids.device)
        is_open = torch.isin(ids[..., 1:], ends).cumsum(-1) == 0
        dropped = torch.isin(ids[..., 1:], torch.tensor(tokenizer.all_special_ids, device=ids.device)) & is_open
        is_whole = ~is_open[..., -1] & ~dropped.any(-1) & (attended < 0).all(-1)
        means = means.masked_fill(~is_whole.cpu(), torch.nan)
    return Sequences(ids, attended, scores, means)


def decode(
    tokenizer: PreTrainedTokenizerBase,
    ids: Sequence[int],
    attended: Sequence[int],
    source_words: Sequence[str],
    outside_words: Mapping[int, str],
    stand_ins: Mapping[str, str],
    *,
    restore_from: str | None = None,
    **options: Any,
) -> str:
    """Turn a sequence into text.

    Args:
        ids: Of `Sequences`, as a list; so too the next.
        attended: The source tokens that replace unknown words.
        source_words: Of the source, as `Batch` has them; so too the next two. Wrong copies of rare ones are mended.
        restore_from: The source whose case and spacing the text gets; None to leave the text as it is.
        options: Of the tokenizer's `decode`.
    """
    words = put_words(ids, attended, source_words, outside_words)
    text = decode_with_words(tokenizer, *words, skip_special_tokens=True, **options)
    if source_words:
        text = mend_miscopied_words(tokenizer, text, source_words)
    text = put_back(text, stand_ins)
    return text if restore_from is None else restore_surface(text, restore_from)


def decode_with_unknown(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """Turn ids that a model reads or writes into text without special tokens, but for the mark of unknown words."""
    skipped = {tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
    # A tokenizer that knows every word may call another mark its unknown one.
    skipped |= set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    return str(tokenizer.decode([number for number in ids if number not in skipped])).strip()


def write_batch(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None,
    request: GenerationRequest,
    *,
    prefix: str = "",
    max_length: int | None = None,
    keep_unknown: bool = False,
) -> list[list[Output]]:
    """Write all outputs that a request asks for, for each text of a batch.

    Args:
        model: The model, in evaluation mode.
        pairs: For each text the pair to edit it by, for a model that does so.
        prefix: What the model reads before every text.
        max_length: Most tokens of a text and its prefix, which is cut there.
        keep_unknown: Whether the outputs keep the mark of unknown words.
    """
    read = [prefix + text for text in texts]
    batch = encode(
        model,
        tokenizer,
        read,
        pairs,
        truncation=True,
        max_length=max_length,
        replace_unknown=request.replace_unknown,
        strength=request.strength,
    )
    found = generate(model, tokenizer, batch.inputs.to(input_device(model)), request, log_probs=True)
    written = []
    columns = (part.tolist() for part in found)
    for text, *known, ids, attended, scores, log_probs in zip(texts, *batch[1:], *columns, strict=True):
        source = text if request.restore_surface else None
        outputs = [
            decode_with_unknown(tokenizer, row)
            if keep_unknown
            else decode(tokenizer, row, places, *known, restore_from=source).strip()
            for row, places in zip(ids, attended, strict=True)
        ]
        numbers = ([None if number != number else number for number in group] for group in (scores, log_probs))
        written.append(list(map(Output, outputs, *numbers)))
    return written
