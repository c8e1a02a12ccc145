"""What processors of generate() do to the scores of words, and the likeliest words, as cheaply as each allows."""

from __future__ import annotations

import math

import torch
from transformers import (
    ForcedBOSTokenLogitsProcessor,
    ForcedEOSTokenLogitsProcessor,
    LogitNormalization,
    LogitsProcessorList,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

__all__ = ["ScoringRules", "likeliest_log_probs", "likeliest_words", "log_normalizer"]

# Rows at once in `likeliest_log_probs`, so that they and their exponentials stay in a core's cache.
ROWS_AT_ONCE = 8
# Words of a block in `likeliest_words`, and how many blocks a wanted word must come to for them to pay.
BLOCK, BLOCKS_A_WORD = 16, 8
# Range of log-sum-exp values without loss in single precision.
LOWEST, HIGHEST = -60.0, 80.0
LOG2_E = math.log2(math.e)


def likeliest_log_probs(
    logits: torch.Tensor, count: int, forbidden: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `logits.log_softmax(-1).topk(count)` does, in fewer passes over the words on a CPU.

    Logits are `(rows, words)`, in single precision. Words that are `forbidden` are not found, though they have their
    probability: their logits are overwritten.
    """
    rows, words = logits.shape
    if logits.device.type != "cpu":
        blocks = maxima = None
    else:
        blocks = _cut_blocks(logits, count)
        maxima = None if blocks is None else logits.new_empty(rows, blocks.shape[2])
    normalizer = log_normalizer(logits, blocks, maxima)
    if forbidden is not None:
        logits.index_fill_(1, forbidden, -torch.inf)
        if blocks is not None and maxima is not None:
            width = blocks.shape[2]
            changed = (forbidden[forbidden < BLOCK * width] % width).unique()
            maxima[:, changed] = blocks[:, :, changed].amax(1)
    found, places = logits.topk(count) if maxima is None else _search_blocks(logits, maxima, count)
    return found - normalizer, places


def log_normalizer(
    logits: torch.Tensor, blocks: torch.Tensor | None = None, maxima: torch.Tensor | None = None
) -> torch.Tensor:
    """Do what `logits.logsumexp(-1, keepdim=True)` does, in less than half the time on a CPU.

    Args:
        logits: `(rows, words)`, in single precision.
        blocks: `logits` as `(rows, BLOCK, blocks)`, where the greatest of each block are wanted too.
        maxima: Receives these, `(rows, blocks)`.
    """
    if logits.device.type != "cpu":
        return logits.logsumexp(-1, keepdim=True)
    # Of ordinary logits nothing need be subtracted before the exponential, and the result says whether they are.
    # Powers of 2 take PyTorch less than half the time of those of e.
    buffer, sums = torch.empty_like(logits[:ROWS_AT_ONCE]), []
    for start in range(0, len(logits), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        rows = logits[part]
        sums.append(torch.mul(rows, LOG2_E, out=buffer[: len(rows)]).exp2_().sum(-1, keepdim=True))
        if blocks is not None and maxima is not None:
            torch.amax(blocks[part], 1, out=maxima[part])
    normalizer = torch.cat(sums).log_()
    is_exact = ((normalizer > LOWEST) & (normalizer < HIGHEST)).all()
    return normalizer if is_exact else logits.logsumexp(-1, keepdim=True)


def likeliest_words(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `scores.topk(count)` does, but look only into the blocks of words with the greatest maxima."""
    blocks = None if scores.device.type != "cpu" else _cut_blocks(scores, count)
    return scores.topk(count) if blocks is None else _search_blocks(scores, blocks.amax(1), count)


def _cut_blocks(scores: torch.Tensor, count: int) -> torch.Tensor | None:
    """The scores as `(rows, BLOCK, blocks)`, without those left over; None for too few words.

    A block is a column, so that the maxima of many are taken at once.
    """
    width = scores.shape[1] // BLOCK
    return None if width < BLOCKS_A_WORD * count else scores[:, : BLOCK * width].unflatten(1, (BLOCK, width))


def _search_blocks(scores: torch.Tensor, maxima: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the greatest scores, given the maxima `(rows, blocks)`."""
    (rows, words), width = scores.shape, maxima.shape[1]
    places = (maxima.topk(count, sorted=False).indices.unsqueeze(2) + width * torch.arange(BLOCK)).flatten(1)
    if words > BLOCK * width:
        places = torch.cat((places, torch.arange(BLOCK * width, words).expand(rows, -1)), dim=1)
    found, order = scores.gather(1, places).topk(count)
    return found, places.gather(1, order)


# They forbid some words, or all but one, and look at nothing but the length.
OF_LENGTH = (
    ForcedBOSTokenLogitsProcessor,
    ForcedEOSTokenLogitsProcessor,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
# They mask words, and leave all other scores unchanged.
FORBIDDING = (
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
# They depend on the tokens and scores of a row, never on its index.
OF_ROW = (LogitNormalization, NoBadWordsLogitsProcessor, NoRepeatNGramLogitsProcessor, SequenceBiasLogitsProcessor)


class ScoringRules:
    """The processors of a call of `generate()`, which may be asked for the likeliest words.

    Processors that depend only on the length run on one row, and their mask is applied to all.
    """

    def __init__(self, processors: LogitsProcessorList):
        self.processors = processors
        kinds = {type(processor) for processor in processors}
        self.keep_scores = kinds <= set(FORBIDDING)
        self.need_tokens = not kinds <= set(OF_LENGTH)
        self.need_all_rows = not kinds <= set(OF_LENGTH + OF_ROW)

    def find_likeliest(
        self, logits: torch.Tensor, tokens: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Find the greatest processed log-probabilities and their words, `(rows, count)`, the likeliest first.

        Logits, `(rows, vocab_size)` in single precision, may be overwritten. Without `need_tokens`, only the length of
        the tokens so far, `(rows, length)`, counts.
        """
        count = min(count, logits.shape[1])
        if self.need_tokens:
            return likeliest_words(self.processors(tokens, logits.log_softmax(-1)), count)
        if not self.processors:
            return likeliest_log_probs(logits, count)
        # 1 is not a log-probability, so that it stays where nothing is forbidden and nothing forced.
        row = self.processors(tokens[:1], logits.new_ones(1, logits.shape[1]))
        is_free = row == 1
        if not is_free.any():
            log_probs, words = row.topk(count)
            return log_probs.expand(len(logits), -1), words.expand(len(logits), -1)
        return likeliest_log_probs(logits, count, (~is_free[0]).nonzero().squeeze(1))
