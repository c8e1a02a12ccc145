"""LSTM states by row, and the decoder's cache between steps."""

from __future__ import annotations

import torch

from ..layers.packing import LstmState, replace_states, select_states
from ..layers.recurrent import RecurrentCache


class HierarchicalCache(RecurrentCache):
    """The decoder's cache between `generate()` steps: word and sentence states.

    Args:
        state: (h, c) of the word LSTM, each `(num_layers, batch, hidden_size)`.
        sentence_state: (h, c) of the sentence LSTM; None without hierarchy.
        attention_keys: Projected states of the source's sentences `(batch, sentences, hidden_size)`.
        weights: The last attention weights `(batch, sentences)`; zero in the first sentence.
    """

    def __init__(
        self,
        state: LstmState,
        sentence_state: LstmState | None = None,
        attention_keys: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
    ):
        super().__init__(state, attention_keys)
        self.sentence_state = sentence_state
        self.weights = weights

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows `indices` of the batch, in that order."""
        super().batch_select_indices(indices)
        if self.sentence_state is not None:
            self.sentence_state = select_states(self.sentence_state, indices)
        if self.weights is not None:
            self.weights = self.weights.index_select(0, indices)


def spread_rows(state: LstmState, rows: torch.Tensor, batch_size: int) -> LstmState:
    """States of some rows as those of a batch, zero for its other rows."""
    h, c = (part.new_zeros(len(part), batch_size, part.shape[-1]) for part in state)
    return replace_states((h, c), rows, state)
