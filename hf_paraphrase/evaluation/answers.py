"""What causal language models answer to the rows of a split, and how probable they find the references."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..generation.backends import load_writer
from ..generation.language_model_writer import LanguageModelWriter
from ..generation.writers import Ask, write
from .results import Decoding


def load_answerer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompt: str | os.PathLike | None
) -> LanguageModelWriter | None:
    """What asks a causal language model; None for an encoder-decoder, which reads a text itself, and takes no
    prompt."""
    if not model.config.is_encoder_decoder:
        return cast(LanguageModelWriter, load_writer(model, tokenizer, prompt=prompt))
    if prompt is not None:
        raise InputError(f"`prompt` is for language models; a {type(model).__name__} reads the text itself")
    return None


def write_answers(
    writer: LanguageModelWriter, sources: Sequence[str], decoding: Decoding, batch_size: int, seed: int
) -> list[tuple[str, ...]]:
    """As many answers to each source as are asked for, the likeliest of a beam first."""
    options = {name: value for name, value in decoding.generate_kwargs.items() if name not in ("do_sample", "seed")}
    if decoding.method != "sample":
        options["num_beams"] = decoding.num_beams
    count = decoding.num_return_sequences
    ask = Ask(
        decoding=decoding.method, num_candidates=count, seed=seed, batch_size=batch_size, generate_kwargs=options
    )
    writer.check(ask)
    # An answer that is a list gives more than one.
    return [tuple(one.text for one in group[:count]) for group in write(writer, sources, ask)]


def perplexity_of_answers(
    writer: LanguageModelWriter, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> dict[str, float]:
    """How well a language model predicts each target as its answer, as `compute_perplexity` of an encoder-decoder."""
    pairs = [pair for pair in zip(sources, targets, strict=True) if all(text.strip() for text in pair)]
    if not pairs:
        raise InputError("no row has both a source and a target with text: there is no perplexity to compute")
    counts = [len(writer.encoder.encode_answer(target)) for _, target in pairs]
    worded, answers = [source for source, _ in pairs], [target for _, target in pairs]
    means = writer.mean_log_probs(worded, answers, batch_size)
    total = sum(mean * count for mean, count in zip(means, counts, strict=True))
    return {"perplexity": math.exp(-total / sum(counts)), "tokens": sum(counts)}
