from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import nn

from ..layers.attention import AdditiveAttention
from ..layers.copying import Copying
from ..layers.precision import at_least_single
from .configuration_edit_lstm import EditLstmConfig

__all__ = ["CopyMechanism", "CopyMemory", "EditVector", "EmbeddedSentences", "find_words_missing_from"]


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
    """
    in_other = _same(ids, other_ids, other_words).any(-1)
    is_repeated = _same(ids, ids, words).tril(-1).any(-1)
    return words & ~in_other & ~is_repeated


def _same(ids: torch.Tensor, other_ids: torch.Tensor, other_words: torch.Tensor) -> torch.Tensor:
    return (ids.unsqueeze(2) == other_ids.unsqueeze(1)) & other_words.unsqueeze(1)


class CopyMemory(NamedTuple):
    """A retrieved pair as the copy mechanism reads it: p and q each with states, their mask and attention keys.

    Args:
        states: `(batch, length, memory_size)` of p and of q.
        masks: `(batch, length)` of each, 0 at padding.
        keys: The output of `CopyMechanism.project_keys` for the states.
        ids: Words of p, then of q, `(batch, lengths of both)`; from `vocab_size` on, outside the vocabulary.
        num_outside_words: How many words outside the vocabulary the batch can copy.
    """

    states: tuple[torch.Tensor, torch.Tensor]
    masks: tuple[torch.Tensor, torch.Tensor]
    keys: tuple[torch.Tensor, torch.Tensor]
    ids: torch.Tensor
    num_outside_words: int


class CopyMechanism(nn.Module):
    """Pointers into p and q, a gate between them and the vocabulary, and a state that knows where they point.

    At every step one additive attention looks at p and one at q, from the decoder's attentional state s, with weights
    a_p and a_q and contexts c_p and c_q. `g = softmax(W_g [s; c_p; c_q] + b)` shares the probability among generating
    a word, copying from p and copying from q; words are generated from `tanh(W [s; c_p; c_q])`. The form is the
    pointer-generator of See et al. 2017 with two sources; Hashimoto et al. 2018 name a copying LSTM alone.
    """

    def __init__(self, config: EditLstmConfig):
        super().__init__()
        sizes = config.hidden_size, config.memory_size, cast(int, config.attention_size)
        self.pointers = nn.ModuleList(AdditiveAttention(*sizes) for _ in range(2))
        joined_size = config.hidden_size + 2 * config.memory_size
        self.gate = nn.Linear(joined_size, 3)
        self.combine = nn.Linear(joined_size, config.hidden_size, bias=False)

    def project_keys(self, states: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Map the states of p and q to attention keys, once a pair."""
        pointers = (cast(AdditiveAttention, pointer) for pointer in self.pointers)
        p, q = (pointer.project_keys(memory) for pointer, memory in zip(pointers, states, strict=True))
        return p, q

    def forward(self, outputs: torch.Tensor, memory: CopyMemory) -> tuple[torch.Tensor, Copying]:
        """Point from every position at once.

        Args:
            outputs: Attentional states `(batch, target_length, hidden_size)`.

        Returns:
            The states to generate words from, of the same shape, and the copy weights.
        """
        pairs = zip(self.pointers, memory.keys, memory.states, memory.masks, strict=True)
        contexts, weights = zip(*(pointer(outputs, *side) for pointer, *side in pairs), strict=True)
        joined = torch.cat((outputs, *contexts), dim=-1)
        log_gates = at_least_single(self.gate(joined)).log_softmax(dim=-1)
        shares = log_gates[..., 1:].exp().split(1, dim=-1)
        copied = torch.cat(
            [share * at_least_single(side) for share, side in zip(shares, weights, strict=True)], dim=-1
        )
        mask = torch.cat(memory.masks, dim=1)
        copying = Copying(log_gates[..., :1], copied, memory.ids, mask, memory.num_outside_words)
        return torch.tanh(self.combine(joined)), copying
