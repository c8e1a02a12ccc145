"""What processors of `generate()` do to the scores of words, as cheaply as each allows."""

from __future__ import annotations

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

from .likeliest_words import likeliest_log_probs, likeliest_words

__all__ = ["ScoringRules"]

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
    """The processors of a call, which may be asked for the likeliest words.

    Processors that depend only on the length run on one row, and their mask is applied to all.

    Args:
        processors: As `generate()` makes them.
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
        """Find the words with the greatest processed log-probabilities.

        Args:
            logits: `(rows, vocab_size)`, in single precision; they may be overwritten.
            tokens: The tokens so far, `(rows, length)`; without `need_tokens`, only the length counts.
            count: How many words of a row.

        Returns:
            Log-probabilities and words, each `(rows, count)`, the likeliest first.
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
