"""Running a trained model over many texts: generating in batches, perplexity, matching pairs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from tqdm.auto import tqdm
from transformers import (
    BatchEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TextClassificationPipeline,
)

from ..errors import InputError
from ..metrics.perplexity.scoring import perplexity
from ..models.layers.language_model_head import score_words
from ..models.layers.layer_weights import input_device
from ..models.layers.products import prepacked
from ..models.search.batch_writing import Output, write_batch
from ..models.search.generation_request import GenerationRequest, check_arguments_of_a_text
from ..models.search.scoring_rules import log_normalizer
from ..models.text.encoded_inputs import encode_inputs, read_prefix, source_limit
from ..models.text.stand_ins import find_stand_ins, put_stand_ins
from ..models.text.surface import drop_invisible
from ..progress import is_watched
from .input_limits import SourceCutter, halve_once
from .selection import load_matching_pipeline

logger = logging.getLogger(__name__)


def generate_paraphrases(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sources: Sequence[str], **kwargs: Any
) -> list[str]:
    """One output for each source, in order: the choice among the outputs of `generate_candidates`."""
    return [candidates[0] for candidates in generate_candidates(model, tokenizer, sources, **kwargs)]


def generate_candidates(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
    num_candidates: int | None = None,
    select: str = "score",
    matcher: str | os.PathLike | TextClassificationPipeline | None = None,
    trust_remote_code: bool = False,
    **generate_kwargs: Any,
) -> list[list[str]]:
    """The outputs to choose from for each source, in order, the chosen one first.

    Args:
        num_candidates: Number of outputs to choose from, with a beam at least as wide; other arguments as in
            `generate_outputs`.
        select: How: "score", "jaccard" or another rule of `generation.select_candidates`.
        matcher: The model that "matcher" asks.
        trust_remote_code: Let that model's own code run.
        generate_kwargs: Handed to `generate_several`: `decoding`, and arguments of `model.generate`.
    """
    if select == "matcher":
        matcher = load_matching_pipeline(matcher, trust_remote_code)
    count = num_candidates or 1
    several = generate_several(model, tokenizer, sources, count, batch_size=batch_size, pairs=pairs, **generate_kwargs)
    rows = [row for row, text in enumerate(sources) if text.strip()]
    request = GenerationRequest(num_candidates=count, select=select, matcher=matcher)
    places = request.choose([sources[row] for row in rows], [several[row] for row in rows])
    for row, place in zip(rows, places, strict=True):
        several[row].insert(0, several[row].pop(place))
    return several


def generate_several(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    count: int,
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
    keep_unknown: bool = False,
    **generate_kwargs: Any,
) -> list[list[str]]:
    """Several outputs for each source, the likeliest first; from a beam at least as wide.

    Args:
        count: Outputs per source; other arguments as in `generate_outputs`.
        generate_kwargs: `decoding`, a key of `DECODINGS`, and arguments of `model.generate`.
    """
    request = GenerationRequest.from_kwargs(num_candidates=count, **generate_kwargs)
    cutter = SourceCutter(model, tokenizer, prefix=read_prefix(model.config))
    sources = [cutter(source) if source.strip() else source for source in sources]
    outputs = generate_outputs(
        model, tokenizer, sources, request, batch_size=batch_size, pairs=pairs, keep_unknown=keep_unknown
    )
    if cutter.cut:
        logger.warning(cutter.describe())
    return [[output.text for output in group] for group in outputs]


def generate_outputs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    request: GenerationRequest,
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
    keep_unknown: bool = False,
    prefix: str | None = None,
    max_source_length: int | None = None,
    description: str | None = "generating",
) -> list[list[Output]]:
    """All outputs that a request asks for, for each source in their order, none of them chosen yet.

    A source that is empty or white space gets empty outputs without asking the model.

    Args:
        model: Any sequence-to-sequence model.
        tokenizer: Its tokenizer.
        sources: Texts. Sources of similar length share a batch.
        request: The request; `output_scores=True` among its parameters adds scores. `replace_unknown` and
            `restore_surface` are done to all outputs.
        batch_size: Sources at once, or half of them where these do not fit into memory.
        pairs: For each source the pair to edit it by, for a model that does so.
        keep_unknown: Whether the outputs keep the mark of unknown words.
        prefix: Prefix of every source; None for the config's.
        max_source_length: Most tokens of a source and its prefix, which is cut there; None for `source_limit`.
        description: Of the progress bar; None for none.

    Raises:
        ValueError: The model or the tokenizer does not support the request.
    """
    check_arguments_of_a_text(request.parameters, len(sources))
    request.generate_kwargs(model, tokenizer)  # which refuses what cannot be
    sources = [drop_invisible(source) for source in sources]
    outputs = [[Output("")] * request.count_outputs(model) for _ in sources]
    limit = source_limit(model, tokenizer) if max_source_length is None else max_source_length
    prefix = read_prefix(model.config) if prefix is None else prefix
    options: dict[str, Any] = {"prefix": prefix, "max_length": limit, "keep_unknown": keep_unknown}

    def generate(rows: list[int]) -> list[list[Output]]:
        texts, pairs_of_texts = _pick(rows, sources, pairs)
        return write_batch(model, tokenizer, texts, pairs_of_texts, request, **options)

    with inference(model):
        rows_with_text = [row for row, text in enumerate(sources) if text.strip()]
        lengths = list(map(len, sources))
        for rows in batches_by_length(lengths, rows_with_text, batch_size, description):
            for row, found in zip(rows, run_halving(generate, rows), strict=True):
                outputs[row] = found
    return outputs


def compute_perplexity(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> dict[str, float]:
    """How well the model predicts each target from its source: exp of the mean cross-entropy of all target tokens.

    Words outside the vocabulary are unknown words for all models alike, for one that copies too.

    Args:
        model: Any sequence-to-sequence model whose `loss` is the mean over the labels of a batch.
        tokenizer: Its tokenizer; perplexities compare between models with one tokenizer only.
        sources: Texts.
        targets: One text for each source. Rows where either is empty are left out.
        batch_size: Rows at once.
        pairs: For each source the pair to edit it by, for a model that does so.

    Returns:
        `perplexity`, and `tokens`: how many target tokens, end marks included, it is the mean over.

    Raises:
        InputError: No row has text on both sides.
    """
    rows_with_text = [
        row for row, pair in enumerate(zip(sources, targets, strict=True)) if all(text.strip() for text in pair)
    ]
    if not rows_with_text:
        raise InputError("no perplexity to compute: every row lacks a source or a target")
    total, tokens, sources = 0.0, 0, _prefixed(model, sources)

    def measure(rows: list[int]) -> list[tuple[float, int]]:
        inputs = _encode_with_labels(model, tokenizer, *_pick(rows, sources, targets, pairs))
        return [(model(**inputs).loss.item(), int((inputs["labels"] != -100).sum()))]

    with inference(model):
        for rows in batches_by_length(list(map(len, sources)), rows_with_text, batch_size, "perplexity"):
            for loss, count in run_halving(measure, rows):
                total, tokens = total + loss * count, tokens + count
    return {"perplexity": perplexity([total], [tokens])["perplexity"], "tokens": tokens}


def mean_log_probs(*args: Any, **kwargs: Any) -> list[float]:
    """The mean over the tokens of each target of what `token_log_probs`, which has the arguments, returns."""
    return [sum(log_probs) / len(log_probs) for log_probs in token_log_probs(*args, **kwargs)]


def token_log_probs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
    description: str | None = "scoring",
) -> list[list[float]]:
    """How probable the model finds each token of each target, given its source and the tokens before it, in nats.

    Args:
        model: Any sequence-to-sequence model.
        tokenizer: Its tokenizer. All tokens of a target count, including end-of-sequence tokens.
        sources: Texts with words.
        targets: One text with words for each source. What exceeds `source_limit` is cut, on both sides.
        batch_size: Batch size; rows of similar length share a batch.
        pairs: For each source the pair to edit it by, for a model that does so.
        description: Of the progress bar; None for none.
    """
    found: list[list[float]] = [[] for _ in sources]
    sources, targets = _with_stand_ins(tokenizer, sources, targets)
    # By targets first: most of the work is the vocabulary's, at each of their positions.
    lengths = list(zip(*(map(len, texts) for texts in (targets, sources)), strict=True))

    def measure(rows: list[int]) -> list[list[float]]:
        inputs = _encode_with_labels(model, tokenizer, *_pick(rows, sources, targets, pairs))
        labels = inputs["labels"]
        if hasattr(model, "prepare_decoder_input_ids_from_labels"):  # so that no loss is computed, which nobody reads
            shift = cast(Any, model).prepare_decoder_input_ids_from_labels
            inputs["decoder_input_ids"] = shift(labels=inputs.pop("labels"))
        is_token = labels != -100
        if getattr(model, "has_plain_loss", False):  # so that nothing is computed at padding
            own = cast(Any, model)
            states = own.model(**inputs, return_dict=True).last_hidden_state
            logits = score_words(own.lm_head, states[is_token]).float()
        else:
            logits = model(**inputs).logits[is_token].float()
        chosen = logits.gather(1, labels[is_token].unsqueeze(1)) - log_normalizer(logits)
        return [part.tolist() for part in chosen.squeeze(1).split(is_token.sum(1).tolist())]

    with inference(model):
        for rows in batches_by_length(lengths, list(range(len(lengths))), batch_size, description):
            for row, log_probs in zip(rows, run_halving(measure, rows), strict=True):
                found[row] = log_probs
    return found


def _with_stand_ins(
    tokenizer: PreTrainedTokenizerBase, sources: Sequence[str], targets: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Sources and targets as the model reads and writes them."""
    found = [find_stand_ins(tokenizer, f"{source} {target}") for source, target in zip(sources, targets, strict=True)]
    return list(map(put_stand_ins, sources, found)), list(map(put_stand_ins, targets, found))


def _encode_with_labels(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: list[str],
    targets: list[str],
    pairs: list[tuple[str, str]] | None,
) -> BatchEncoding:
    """A batch as `forward` takes it to compute a loss, where the model is."""
    limit = source_limit(model, tokenizer)
    inputs, _ = encode_inputs(tokenizer, sources, pairs, truncation=True, max_length=limit)
    encoded = tokenizer(text_target=targets, padding=True, truncation=True, max_length=limit, return_tensors="pt")
    inputs["labels"] = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
    return inputs.to(input_device(model))


def match_pairs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    first: Sequence[str],
    second: Sequence[str],
    *,
    batch_size: int = 64,
) -> torch.Tensor:
    """Label or score sentence pairs, in order; pairs of similar length share a batch.

    Args:
        model: Any model for sequence classification.
        tokenizer: Its tokenizer.
        first: Texts.
        second: As many texts; of a pair longer than `source_limit` the longer text is cut.
        batch_size: Pairs at once.

    Returns:
        Logits, `(pairs, num_labels)`.
    """
    logits = torch.empty(len(first), cast(int, model.config.num_labels))
    lengths = [len(one) + len(other) for one, other in zip(first, second, strict=True)]
    options = {"truncation": True, "max_length": source_limit(model, tokenizer)}

    def match(rows: list[int]) -> list[torch.Tensor]:
        inputs = tokenizer(*_pick(rows, first, second), padding=True, return_tensors="pt", **options)
        return list(model(**inputs.to(input_device(model))).logits.float().cpu())

    with inference(model):
        for rows in batches_by_length(lengths, list(range(len(lengths))), batch_size, "matching"):
            for row, found in zip(rows, run_halving(match, rows), strict=True):
                logits[row] = found
    return logits


def batches_by_length(
    lengths: Sequence[Any], rows: list[int], batch_size: int, description: str | None
) -> Iterator[list[int]]:
    """Batches of rows of similar length, longest first, so that running out of memory happens at once.

    Args:
        lengths: Of all texts, in characters, which need no tokenizer: numbers, or tuples of them.
        rows: Places of the texts to put into batches.
        batch_size: Rows of a batch.
        description: Of the progress bar; None for none.
    """
    rows = sorted(rows, key=lambda row: lengths[row], reverse=True)
    is_off = description is None or not is_watched()
    with tqdm(total=len(rows), desc=description, unit="sentence", disable=is_off) as progress:
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            yield batch
            progress.update(len(batch))


def run_halving(run: Callable[[list[int]], list[Any]], rows: list[int]) -> list[Any]:
    """The result of a batch, halved if it does not fit into memory."""

    def in_parts(size: int) -> list[Any]:
        return [found for start in range(0, len(rows), size) for found in run(rows[start : start + size])]

    return halve_once(in_parts, len(rows))


def _prefixed(model: PreTrainedModel, sources: Sequence[str], prefix: str | None = None) -> list[str]:
    """The sources as the model was trained to read them."""
    prefix = read_prefix(model.config) if prefix is None else prefix
    return [prefix + source for source in sources]


def _pick(rows: list[int], *columns: Sequence | None) -> list[Any]:
    return [None if column is None else [column[row] for row in rows] for column in columns]


@contextmanager
def inference(model: PreTrainedModel) -> Iterator[None]:
    """Switch dropout and gradients off for a while, in which the weights do not change."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), prepacked(model):
            yield
    finally:
        model.train(training)
