"""What `generate()` writes, and how probable the model finds it, whether a search has said so or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from transformers import GenerationConfig, PreTrainedModel

from .decodings import DECODINGS

__all__ = ["generate_with_scores"]


class ScoredOutputs(NamedTuple):
    """Sequences, `(texts * sequences a text, length)`, and for each its score and mean log-probability, or None."""

    sequences: torch.Tensor
    scores: torch.Tensor | None = None
    mean_log_probs: torch.Tensor | None = None


def generate_with_scores(
    model: PreTrainedModel,
    inputs: Mapping[str, torch.Tensor],
    generate_kwargs: Mapping[str, Any],
    log_probs: bool = False,
) -> ScoredOutputs:
    """Let a model write, and score it if `output_scores` asks for that.

    Args:
        model: The model.
        inputs: What it reads.
        generate_kwargs: Other arguments of its `generate()`.
        log_probs: Whether the mean log-probabilities are wanted too; only our beam searches know them.
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
    if isinstance(outputs, torch.Tensor):
        return ScoredOutputs(outputs)
    means = outputs.get("mean_log_probs") if log_probs else None
    if not output_scores:
        return ScoredOutputs(outputs.sequences, None, means)
    if outputs.get("sequences_scores") is not None:
        return ScoredOutputs(outputs.sequences, outputs.sequences_scores, means)
    length_penalty = 1.0 if length_penalty is None else length_penalty
    return ScoredOutputs(outputs.sequences, score_sequences(outputs, length_penalty, model.generation_config))


def score_sequences(outputs: Any, length_penalty: float, config: GenerationConfig) -> torch.Tensor:
    """What beam search would give every sequence that was written without a search, `(sequences,)`.

    Args:
        outputs: Of `generate()`, with `scores`.
        length_penalty: The power of the length by which the logarithm of the probability is divided.
        config: Has the ids of end and padding.
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
