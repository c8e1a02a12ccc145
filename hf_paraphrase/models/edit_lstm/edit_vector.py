from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import nn

from .configuration_edit_lstm import EditLstmConfig

__all__ = ["EditVector", "EmbeddedSentences", "find_words_missing_from"]


class EmbeddedSentences(NamedTuple):
    """A batch of sentences: ids `(batch, length)`, their mask of 1 and 0, and their embeddings."""

    ids: torch.Tensor
    mask: torch.Tensor
    embeddings: torch.Tensor


class EditVector(nn.Module):
    """What turns p into q, as one vector (Guu et al. 2018): inserted words in one half, deleted ones in the other.

    `z = Σ_{w ∈ q \\ p} Φ(w) ; Σ_{w ∈ p \\ q} Φ(w)`, where p and q are sets of words, without padding and the marks of
    beginning and end, and `Φ(w) = W e(w)` brings a word's embedding to half the edit vector's width.
    """

    def __init__(self, config: EditLstmConfig):
        super().__init__()
        self.word = nn.Linear(config.embedding_size, cast(int, config.edit_vector_size) // 2, bias=False)
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        marks = {config.pad_token_id, config.bos_token_id, config.decoder_start_token_id, *ends}
        self.marks = sorted(marks - {None})

    def forward(self, p: EmbeddedSentences, q: EmbeddedSentences) -> torch.Tensor:
        """Add up the words of a batch of pairs; returns `(batch, edit_vector_size)`."""
        words_of_p, words_of_q = self._find_words(p), self._find_words(q)
        inserted = find_words_missing_from(q.ids, words_of_q, p.ids, words_of_p)
        deleted = find_words_missing_from(p.ids, words_of_p, q.ids, words_of_q)
        sums = [
            (words.to(states.dtype).unsqueeze(1) @ states).squeeze(1)
            for words, states in ((inserted, q.embeddings), (deleted, p.embeddings))
        ]
        return self.word(torch.stack(sums, dim=1)).flatten(1)

    def _find_words(self, sentences: EmbeddedSentences) -> torch.Tensor:
        ids, mask, _ = sentences
        return mask.bool() & ~torch.isin(ids, torch.tensor(self.marks, device=ids.device))


def find_words_missing_from(
    ids: torch.Tensor, words: torch.Tensor, other_ids: torch.Tensor, other_words: torch.Tensor
) -> torch.Tensor:
    """Mark the words of the first sentences that the second ones lack, each at its first place.

    Args:
        ids: `(batch, length)`.
        words: Which of them count, of the same shape.
        other_ids: `(batch, other_length)`.
        other_words: Which of these count.
    """
    in_other = _same(ids, other_ids, other_words).any(-1)
    is_repeated = _same(ids, ids, words).tril(-1).any(-1)
    return words & ~in_other & ~is_repeated


def _same(ids: torch.Tensor, other_ids: torch.Tensor, other_words: torch.Tensor) -> torch.Tensor:
    return (ids.unsqueeze(2) == other_ids.unsqueeze(1)) & other_words.unsqueeze(1)
