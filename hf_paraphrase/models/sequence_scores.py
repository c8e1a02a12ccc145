"""How probable a model finds what `generate()` wrote, whether a search has said so or not."""

from __future__ import annotations

import torch
from transformers import GenerationConfig
from transformers.utils import ModelOutput

__all__ = ["sequence_scores"]


def sequence_scores(outputs: ModelOutput, length_penalty: float, config: GenerationConfig) -> torch.FloatTensor:
    """The score of every sequence: the search's own, or without a search what beam search would give it.

    Args:
        outputs: Of `generate()`, with `scores`.
        length_penalty: The power of the length by which the logarithm of the probability is divided.
        config: Has the ids of end and padding.

    Returns:
        `(sequences,)`.
    """
    if outputs.get("sequences_scores") is not None:
        return outputs.sequences_scores
    written = outputs.sequences[:, -len(outputs.scores) :]
    steps = zip(outputs.scores, written.split(1, dim=1), strict=True)
    log_probs = torch.cat([scores.float().log_softmax(-1).gather(1, ids) for scores, ids in steps], dim=1)
    ends = torch.as_tensor([] if config.eos_token_id is None else config.eos_token_id, device=written.device)
    is_end = torch.isin(written, ends)
    is_padding = is_end.cumsum(1) > is_end.long()
    if config.pad_token_id is not None:  # as what stopped otherwise is filled up
        is_padding |= ((written == config.pad_token_id) & ~is_end).long().flip(1).cummin(1).values.flip(1).bool()
    return log_probs.masked_fill(is_padding, 0.0).sum(1) / (~is_padding).sum(1) ** length_penalty
