"""Running a trained model over many texts, cut to what it reads, in batches that fit into memory."""

from __future__ import annotations

import logging
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from tqdm.auto import tqdm
from transformers import (
    BatchEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TextClassificationPipeline,
)

from ..common.checks import whole_number
from ..common.errors import InputError
from ..common.progress import is_watched
from ..metrics.perplexity.scoring import perplexity
from ..models.layers.layer_weights import input_device
from ..models.layers.products import prepacked
from ..models.search.batch_writing import Output, write_batch
from ..models.search.generation_request import GenerationRequest, check_arguments_of_a_text
from ..models.text.encoded_inputs import encode_inputs, read_prefix, source_limit
from ..models.text.surface import drop_invisible
from .selection import load_matching_pipeline

logger = logging.getLogger(__name__)

# Words and symbols, whose beginning or end a tokenizer may mark.
PIECE = re.compile(r"\w+|[^\w\s]")
# Tokens that frame a text, at most.
FRAME = 8
# Only this many characters per allowed token are examined.
MOST_CHARACTERS = 100


class SourceCutter:
    """Truncates texts to the length that a model reads, and counts all (`read`) and the truncated ones (`cut`).

    Args:
        max_source_length: Maximum tokens of a text, special tokens and prefix included; None for `source_limit`.
        quiet: Its creator reports the truncated texts.

    Raises:
        InputError: `max_source_length` is not a number of tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_source_length: int | None = None,
        prefix: str = "",
        quiet: bool = False,
    ):
        longest = source_limit(model, tokenizer) if max_source_length is None else max_source_length
        self.limit: Any = whole_number("max_source_length", longest, 1)
        self.tokenizer, self.prefix, self.quiet = tokenizer, prefix, quiet
        self.read = self.cut = 0

    def __call__(self, text: str) -> str:
        """The start of a text that fits, in whole words where it has any."""
        self.read += 1
        start = text[: MOST_CHARACTERS * self.limit]
        if len(start) == len(text) and (self._is_short(text) or self._count(text) <= self.limit):
            return text
        self.cut += 1
        fitting = bisect_right(range(1, len(start) + 1), self.limit, key=lambda length: self._count(start[:length]))
        words = re.match(r".*\S(?=\s)", start[: fitting + 1], re.DOTALL)
        return words[0] if words else start[:fitting]

    def describe(self) -> str:
        """A note on the truncated texts."""
        return (
            f"{self.cut:,} of {self.read:,} texts have more than {self.limit:,} tokens and are read up to there "
            "(`max_source_length`)"
        )

    def _is_short(self, text: str) -> bool:
        """Whether a text surely fits, without tokenizing: a token has at least one byte, or marks the end of a
        word."""
        if not text.isascii():
            return len(self.prefix) + len(text) < self.limit // 8
        return sum(len(part) + len(PIECE.findall(part)) for part in (self.prefix, text)) + FRAME <= self.limit

    def _count(self, text: str) -> int:
        return len(self.tokenizer(self.prefix + text, verbose=False)["input_ids"])


class WholeTexts(SourceCutter):
    """Leaves texts as they are, where the length that is read is unknown."""

    def __init__(self):
        self.limit, self.cut, self.quiet = None, 0, True

    def __call__(self, text: str) -> str:
        """The text."""
        return text


def generate_paraphrases(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sources: Sequence[str], **kwargs: Any
) -> list[str]:
    """One output for each source, in order; arguments as in `generate_several`."""
    return [outputs[0] for outputs in generate_several(model, tokenizer, sources, **kwargs)]


def generate_several(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: Sequence[str],
    num_candidates: int = 1,
    *,
    batch_size: int = 64,
    pairs: Sequence[tuple[str, str]] | None = None,
    keep_unknown: bool = False,
    select: str = "score",
    matcher: str | os.PathLike | TextClassificationPipeline | None = None,
    trust_remote_code: bool = False,
    **generate_kwargs: Any,
) -> list[list[str]]:
    """Several outputs for each source, in order; from a beam at least as wide.

    Args:
        num_candidates: Outputs per source; other arguments as in `generate_outputs`.
        select: How one is chosen: "score", "jaccard" or another rule of `generation.select_candidates`.
        matcher: The model that "matcher" asks.
        trust_remote_code: Let that model's own code run.
        generate_kwargs: `decoding`, a key of `DECODINGS`, and arguments of `model.generate`.

    Returns:
        The chosen output of each source, then the others, the likeliest first.
    """
    if select == "matcher":
        matcher = load_matching_pipeline(matcher, trust_remote_code)
    choosing: dict[str, Any] = {"num_candidates": num_candidates, "select": select, "matcher": matcher}
    request = GenerationRequest.from_kwargs(**choosing, **generate_kwargs)
    cutter = SourceCutter(model, tokenizer, prefix=read_prefix(model.config))
    read = [cutter(source) if source.strip() else source for source in sources]
    options: dict[str, Any] = {"batch_size": batch_size, "pairs": pairs, "keep_unknown": keep_unknown}
    outputs = generate_outputs(model, tokenizer, read, request, **options)
    if cutter.cut:
        logger.warning(cutter.describe())
    several = [[output.text for output in group] for group in outputs]
    rows = [row for row, text in enumerate(sources) if text.strip()]
    places = request.choose([sources[row] for row in rows], [several[row] for row in rows])
    for row, place in zip(rows, places, strict=True):
        several[row].insert(0, several[row].pop(place))
    return several


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
        max_source_length: Maximum tokens of a source and its prefix, which is cut there; None for `source_limit`.
        description: Of the progress bar; None for none.

    Raises:
        ValueError: The model or the tokenizer does not support the request.
    """
    check_arguments_of_a_text(request.parameters, len(sources))
    request.generate_kwargs(model, tokenizer)  # which refuses what cannot be
    sources = [drop_invisible(source) for source in sources]
    limit = source_limit(model, tokenizer) if max_source_length is None else max_source_length
    prefix = read_prefix(model.config) if prefix is None else prefix
    options: dict[str, Any] = {"prefix": prefix, "max_length": limit, "keep_unknown": keep_unknown}

    def generate(rows: list[int]) -> list[list[Output]]:
        texts, pairs_of_texts = pick(rows, sources, pairs)
        return write_batch(model, tokenizer, texts, pairs_of_texts, request, **options)

    rows_with_text = [row for row, text in enumerate(sources) if text.strip()]
    found = run_by_length(model, generate, list(map(len, sources)), batch_size, rows_with_text, description)
    return [group or [Output("")] * request.count_outputs(model) for group in found]


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
    prefix, losses, counts = read_prefix(model.config), [], []
    sources = [prefix + source for source in sources]

    def measure(rows: list[int]) -> list[int]:
        inputs = encode_with_labels(model, tokenizer, *pick(rows, sources, targets, pairs))
        loss = model(**inputs).loss.item()
        counts.append(int((inputs["labels"] != -100).sum()))
        losses.append(loss * counts[-1])
        return rows

    run_by_length(model, measure, list(map(len, sources)), batch_size, rows_with_text, "perplexity")
    return {"perplexity": perplexity([sum(losses)], [sum(counts)])["perplexity"], "tokens": sum(counts)}


def encode_with_labels(
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
    lengths = [len(one) + len(other) for one, other in zip(first, second, strict=True)]
    options = {"truncation": True, "max_length": source_limit(model, tokenizer)}

    def match(rows: list[int]) -> list[torch.Tensor]:
        inputs = tokenizer(*pick(rows, first, second), padding=True, return_tensors="pt", **options)
        return list(model(**inputs.to(input_device(model))).logits.float().cpu())

    found = run_by_length(model, match, lengths, batch_size, description="matching")
    return torch.stack(found) if found else torch.empty(0, cast(int, model.config.num_labels))


def run_by_length(
    model: PreTrainedModel,
    run: Callable[[list[int]], list[Any]],
    lengths: Sequence[Any],
    batch_size: int,
    rows: Sequence[int] | None = None,
    description: str | None = None,
) -> list[Any]:
    """Run a model on batches of texts of similar length, without dropout and gradients.

    The longest come first, so that running out of memory happens at once; a batch that does not fit is halved.

    Args:
        run: From the places of a batch to a result for each.
        lengths: Of all texts, in characters, which need no tokenizer: numbers, or tuples of them.
        batch_size: Rows of a batch.
        rows: Places of the texts to run; None for all.
        description: Of the progress bar; None for none.

    Returns:
        The result of each text; None for those that are not among `rows`.
    """
    found: list[Any] = [None] * len(lengths)
    rows = sorted(range(len(lengths)) if rows is None else rows, key=lambda row: lengths[row], reverse=True)
    is_off = description is None or not is_watched()
    with inference(model), tqdm(total=len(rows), desc=description, unit="sentence", disable=is_off) as progress:
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            for row, result in zip(batch, halve_once(run, batch), strict=True):
                found[row] = result
            progress.update(len(batch))
    return found


def halve_once(run: Callable[[list[int]], list[Any]], rows: list[int]) -> list[Any]:
    """Run a batch of rows; where it does not fit into memory, once more in halves.

    Unlike accelerate's `find_executable_batch_size`, whose judgement of errors it takes, it then lets the error go on.
    """
    try:
        return run(rows)
    except RuntimeError as error:
        if len(rows) < 2 or not should_reduce_batch_size(error):
            raise
    # Outside of the handler, where nothing holds on to what filled the memory.
    clear_device_cache(garbage_collection=True)
    half = (len(rows) + 1) // 2
    logger.warning("%d texts at once do not fit into memory; %d are tried", len(rows), half)
    return run(rows[:half]) + run(rows[half:])


def pick(rows: list[int], *columns: Sequence | None) -> list[Any]:
    """The values of some rows, from columns that may be missing."""
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
