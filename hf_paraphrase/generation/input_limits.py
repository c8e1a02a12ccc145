"""Input limits: texts no longer than the model reads, batches no larger than memory allows."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.checks import whole_number
from ..common.files import check_unicode
from ..errors import InputError
from ..models.text.encoded_inputs import source_limit

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
        max_source_length: Most tokens of a text, special tokens and prefix included; None for `source_limit`.
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
        self.limit: int | None = whole_number("max_source_length", longest, 1)
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
        """A note on truncated texts; empty if there are none."""
        if not self.cut:
            return ""
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


def check_each_is_text(texts: Sequence[Any], first: int) -> None:
    """Raise InputError unless all are texts; `first` is the number of the first of them."""
    for number, text in enumerate(texts, first):
        if not isinstance(text, str):
            raise InputError(f"`texts`, number {number} from 0: a {type(text).__name__}, not a text: {text!r:.100}")
        check_unicode(text, f"`texts`, number {number} from 0")
