"""The likeliest of many words and how likely they are, without a softmax over all of them."""

from __future__ import annotations

import torch

__all__ = ["likeliest_words", "log_normalizer"]

# Rows at once in `log_normalizer`, so that its output stays in a core's cache.
ROWS_AT_ONCE = 8
# Words of a block in `likeliest_words`, and how many blocks a wanted word must come to for them to pay.
BLOCK, BLOCKS_A_WORD = 16, 8
# Range of log-sum-exp values without loss in single precision.
LOWEST, HIGHEST = -60.0, 80.0


def log_normalizer(logits: torch.Tensor) -> torch.Tensor:
    """What `log_softmax` subtracts of each row: the logarithm of the sum of its exponentials.

    Args:
        logits: `(rows, words)`, in single precision.

    Returns:
        `(rows, 1)`.
    """
    if logits.device.type != "cpu":
        return logits.logsumexp(-1, keepdim=True)
    # Of ordinary logits nothing need be subtracted before the exponential, and the result says whether they are.
    buffer = torch.empty_like(logits[:ROWS_AT_ONCE])
    sums = [torch.exp(rows, out=buffer[: len(rows)]).sum(-1, keepdim=True) for rows in logits.split(ROWS_AT_ONCE)]
    normalizer = torch.cat(sums).log_()
    is_exact = ((normalizer > LOWEST) & (normalizer < HIGHEST)).all()
    return normalizer if is_exact else logits.logsumexp(-1, keepdim=True)


def likeliest_words(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `scores.topk(count)` does, but look only into the blocks of words with the greatest maxima.

    Args:
        scores: `(rows, words)`.
        count: How many, no more than there are words.

    Returns:
        The scores and the words, each `(rows, count)`, the greatest first.
    """
    rows, words = scores.shape
    width = words // BLOCK
    if scores.device.type != "cpu" or width < BLOCKS_A_WORD * count:
        return scores.topk(count)
    # A block is a column, so that the maxima of many are taken at once. What is left over is not a block's.
    maxima = scores[:, : BLOCK * width].unflatten(1, (BLOCK, width)).amax(1)
    blocks = maxima.topk(count, sorted=False).indices
    places = (blocks.unsqueeze(2) + width * torch.arange(BLOCK)).flatten(1)
    places = torch.cat((places, torch.arange(BLOCK * width, words).expand(rows, -1)), dim=1)
    found, order = scores.gather(1, places).topk(count)
    return found, places.gather(1, order)
