"""What processors of generate() do to the scores of words, and the likeliest words, as cheaply as each allows."""

from __future__ import annotations

import math

import torch
from torch import Tensor
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

# Rows at once in `likeliest_log_probs`, so that they and their exponentials stay in a core's cache.
ROWS_AT_ONCE = 8
# Words of a block in `likeliest_words`, and how many blocks a wanted word must come to for them to pay.
BLOCK, BLOCKS_A_WORD = 16, 8
# Range of log-sum-exp values without loss in single precision.
LOWEST, HIGHEST = -60.0, 80.0
LOG2_E = math.log2(math.e)


def likeliest_log_probs(
    logits: Tensor, scores: Tensor, count: int, forbidden: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Find the words that continue the beams of a text best, in few passes over the words on a CPU.

    Those are the greatest `count` sums of a beam's score and a word's log-probability.

    Args:
        logits: `(texts * beams, words)`, in single precision.
        scores: `(texts, beams)`.
        count: Words of a text.
        forbidden: Words that are not found, though they have their probability: their logits may be overwritten.

    Returns:
        The log-probabilities of the words, and their places among those of all beams, each `(texts, count)`.
    """
    logits = logits.contiguous()  # DNPG's are a slice of wider rows
    texts, beams = scores.shape
    words, blocks, maxima = logits.shape[1], _cut_blocks(logits, count, beams), None
    if blocks is not None:
        maxima = logits.new_empty(len(logits), blocks.shape[2])
    normalizer = log_normalizer(logits, blocks, maxima)
    if forbidden is not None:
        logits.index_fill_(1, forbidden, -torch.inf)
    if blocks is None or maxima is None:
        log_probs = (logits - normalizer).view(texts, -1)
        best = (log_probs.view(texts, beams, -1) + scores.unsqueeze(2)).flatten(1).topk(count).indices
        return log_probs.gather(1, best), best
    if forbidden is not None:
        width = blocks.shape[2]
        changed = (forbidden[forbidden < BLOCK * width] % width).unique()
        maxima[:, changed] = blocks[:, :, changed].amax(1)
    maxima += scores.view(-1, 1) - normalizer
    places = _best_blocks(maxima.view(texts, beams, -1), words, count)
    of_beams = places // words
    log_probs = logits.view(texts, -1).gather(1, places) - normalizer.view(texts, beams).gather(1, of_beams)
    best = (log_probs + scores.gather(1, of_beams)).topk(count).indices
    return log_probs.gather(1, best), places.gather(1, best)


def log_normalizer(logits: Tensor, blocks: Tensor | None = None, maxima: Tensor | None = None) -> Tensor:
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


def likeliest_words(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Do what `scores.topk(count)` does, but look only into the blocks of words with the greatest maxima."""
    blocks = _cut_blocks(scores, count)
    if blocks is None:
        return scores.topk(count)
    places = _best_blocks(blocks.amax(1).unsqueeze(1), scores.shape[1], count)
    found, order = scores.gather(1, places).topk(count)
    return found, places.gather(1, order)


def _cut_blocks(scores: Tensor, count: int, beams: int = 1) -> Tensor | None:
    """The scores on a CPU as `(rows, BLOCK, blocks)`, without those left over; None for too few words.

    A block is a column, so that the maxima of many are taken at once.
    """
    width = scores.shape[1] // BLOCK
    is_worth_it = scores.device.type == "cpu" and beams * width >= BLOCKS_A_WORD * count
    return scores[:, : BLOCK * width].unflatten(1, (BLOCK, width)) if is_worth_it else None


def _best_blocks(maxima: Tensor, words: int, count: int) -> Tensor:
    """Places, among the words of all beams of a text, of those in the best blocks and in none, `(texts, places)`.

    The blocks' `maxima` are `(texts, beams, blocks)`; a beam has so many `words`, and a text `count` best blocks.
    """
    texts, beams, width = maxima.shape
    best = maxima.flatten(1).topk(count, sorted=False).indices
    firsts = best // width * words + best % width
    places = (firsts.unsqueeze(2) + width * torch.arange(BLOCK)).flatten(1)
    others = (words * torch.arange(beams).unsqueeze(1) + torch.arange(BLOCK * width, words)).flatten()
    return torch.cat((places, others.expand(texts, -1)), dim=1)


# They mask words by the length alone.
SUPPRESSING = (
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
# They forbid some words, or all but one, and look at nothing but the length.
OF_LENGTH = (*SUPPRESSING, ForcedBOSTokenLogitsProcessor, ForcedEOSTokenLogitsProcessor)
# They mask words, and leave all other scores unchanged.
FORBIDDING = (*SUPPRESSING, NoBadWordsLogitsProcessor, NoRepeatNGramLogitsProcessor)
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

    def find_likeliest(self, logits: Tensor, tokens: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Find the words that continue the beams of a text best, by the processed log-probabilities.

        Args:
            logits: `(texts * beams, vocab_size)` in single precision, which may be overwritten.
            tokens: Those so far, `(texts * beams, length)`; only their length counts without `need_tokens`.
            scores: Of the beams, `(texts, beams)`.
            count: Words of a text.

        Returns:
            As `likeliest_log_probs`.
        """
        forbidden = None
        if self.need_tokens:
            return self._choose(self.processors(tokens, logits.log_softmax(-1)), scores, count)
        if self.processors:
            # 1 is not a log-probability, so that it stays where nothing is forbidden and nothing forced.
            row = self.processors(tokens[:1], logits.new_ones(1, logits.shape[1]))
            is_free = row == 1
            if not is_free.any():
                return self._choose(row.expand(len(logits), -1), scores, count)
            forbidden = (~is_free[0]).nonzero().squeeze(1)
        return likeliest_log_probs(logits, scores, count, forbidden)

    def _choose(self, log_probs: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        log_probs = log_probs.reshape(*scores.shape, -1)
        _, places = likeliest_words((log_probs + scores.unsqueeze(2)).flatten(1), count)
        return log_probs.flatten(1).gather(1, places), places
