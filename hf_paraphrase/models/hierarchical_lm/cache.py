from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from transformers import LogitsProcessor, PreTrainedConfig


class HierarchicalLmCache:
    """The decoder's cache between `generate()` steps: character, word and sentence levels.

    Args:
        like: Has the device and type of the states, and a row for each of the batch's, `(batch, value_size)`.
        spelling_size: Width of the word decoder's state.
        max_words: Capacity in words; it grows if needed.
    """

    # Rows close their words at different steps; generate() must not compile against it as a static cache.
    is_compileable = False

    def __init__(
        self, layers: Iterable[Any], like: torch.Tensor, spelling_size: int, max_words: int, max_characters: int
    ):
        batch_size = len(like)
        self.layers = [layer.new_state(like, batch_size, max_words) for layer in layers]
        self.max_words = max_words
        self.words = torch.zeros(batch_size, dtype=torch.long, device=like.device)
        self.characters = torch.zeros_like(self.words)
        self.open_words = self.words.new_zeros(batch_size, max_characters)
        self.spelling = like.new_zeros(batch_size, spelling_size)
        self.vectors = torch.zeros_like(like)
        self.seen_tokens = 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of decoder positions seen; the same for every layer."""
        return self.seen_tokens

    def append(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """Add a character to the open words of some rows."""
        fits = (rows & (self.characters < self.open_words.shape[1])).nonzero().squeeze(1)
        self.open_words[fits, self.characters[fits]] = ids[fits]
        self.characters += rows

    def close_words(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Take the open words of some rows: their symbols, where each starts, and how many characters it has."""
        symbols, characters = self.open_words[rows].flatten(), self.characters[rows]
        starts = torch.arange(len(rows), device=rows.device) * self.open_words.shape[1]
        self.characters[rows] = 0
        self.spelling[rows] = 0
        if int(self.words[rows].max()) >= self.max_words:
            self._grow()
        return symbols, starts, characters

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Keep, for every beam, the state of the hypothesis `beam_idx` that it continues."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows `indices` of the batch, in that order."""
        self.layers = [state[indices] for state in self.layers]
        for name in ("words", "characters", "open_words", "spelling", "vectors"):
            setattr(self, name, getattr(self, name)[indices])

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row of the batch `repeats` times, next to each other."""
        rows = torch.arange(len(self.words), device=self.words.device)
        self.batch_select_indices(rows.repeat_interleave(repeats))

    def _grow(self) -> None:
        # A state without a dimension of words, a GRU's, has nothing to grow.
        self.layers = [
            nn.functional.pad(state, (0, 0, 0, self.max_words)) if state.dim() == 3 else state for state in self.layers
        ]
        self.max_words *= 2


class LengthLimits(LogitsProcessor):
    """Limits the characters of a word and the words of a sentence; then STOP and END must follow."""

    def __init__(self, config: PreTrainedConfig):
        self.max_characters, self.max_words = config.max_characters, config.max_words
        self.start, self.stop, self.end = config.decoder_start_token_id, config.stop_token_id, config.eos_token_id

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        is_stop = input_ids == self.stop
        marks = is_stop | (input_ids == self.start)
        places = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device)
        open_characters = input_ids.shape[1] - (marks * places).amax(dim=1)
        long_word = open_characters >= self.max_characters
        long_sentence = (is_stop.sum(dim=1) >= self.max_words) & ~long_word
        scores = self._only(scores, long_word, self.stop)
        return self._only(scores, long_sentence, self.end)

    @staticmethod
    def _only(scores: torch.Tensor, rows: torch.Tensor, token: int) -> torch.Tensor:
        others = torch.ones_like(scores, dtype=torch.bool)
        others[:, token] = False
        return scores.masked_fill(others & rows.unsqueeze(1), -torch.inf)
