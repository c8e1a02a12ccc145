from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from .attention import AdditiveAttention
from .configuration_edit_lstm import EditLstmConfig
from .precision import at_least_single

__all__ = ["CopyMechanism", "CopyMemory", "Copying", "add_copied_words", "copying_loss"]


class CopyMemory(NamedTuple):
    """A retrieved pair as the copy mechanism reads it: p and q each with states, their mask and attention keys.

    Args:
        states: `(batch, length, memory_size)` of p and of q.
        masks: `(batch, length)` of each, 0 at padding.
        keys: What `CopyMechanism.project_keys` made of the states.
        ids: Words of p, then of q, `(batch, lengths of both)`; from `vocab_size` on, outside the vocabulary.
        num_outside_words: How many words outside the vocabulary the batch can copy.
    """

    states: tuple[torch.Tensor, torch.Tensor]
    masks: tuple[torch.Tensor, torch.Tensor]
    keys: tuple[torch.Tensor, torch.Tensor]
    ids: torch.LongTensor
    num_outside_words: int


class Copying(NamedTuple):
    """How much the decoder copies from where.

    Args:
        log_generated: Logarithm of the probability of generating, `(batch, target_length, 1)`.
        weights: Probability of copying each word of p, then of q, `(batch, target_length, lengths of both)`; with that
            of generating they add up to 1.
        ids: These words, as `CopyMemory` has them.
        mask: `(batch, lengths of both)`, 0 at padding.
        num_outside_words: As `CopyMemory` has it.
    """

    log_generated: torch.Tensor
    weights: torch.Tensor
    ids: torch.LongTensor
    mask: torch.Tensor
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
        sizes = config.hidden_size, config.memory_size, config.attention_size
        self.pointers = nn.ModuleList(AdditiveAttention(*sizes) for _ in range(2))
        joined_size = config.hidden_size + 2 * config.memory_size
        self.gate = nn.Linear(joined_size, 3)
        self.combine = nn.Linear(joined_size, config.hidden_size, bias=False)

    def project_keys(self, states: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Map the states of p and q to attention keys, once a pair."""
        return tuple(pointer.project_keys(memory) for pointer, memory in zip(self.pointers, states, strict=True))

    def forward(self, outputs: torch.Tensor, memory: CopyMemory) -> tuple[torch.Tensor, Copying]:
        """Point from every position at once.

        Args:
            outputs: Attentional states `(batch, target_length, hidden_size)`.
            memory: The pair.

        Returns:
            The states to generate words from, of the same shape, and what is copied.
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


def copying_loss(scores: torch.Tensor, copying: Copying, labels: torch.LongTensor) -> torch.Tensor:
    """The mean cross-entropy of the mixture that `add_copied_words` makes, in nats over the labels that are not -100.

    The labels' probabilities alone are mixed: nothing as large as the scores is made but their softmax.

    Args:
        scores: Of every word of the vocabulary, before the softmax, `(batch, target_length, vocab_size)`.
        copying: What is copied.
        labels: `(batch, target_length)`.
    """
    in_vocabulary = (labels >= 0) & (labels < scores.shape[-1])
    costs = nn.functional.cross_entropy(
        at_least_single(scores.flatten(0, 1)), labels.where(in_vocabulary, -100).flatten(), reduction="none"
    )
    generated = copying.log_generated.squeeze(-1) - costs.view_as(labels)
    is_copy = copying.ids.unsqueeze(1) == labels.unsqueeze(2)
    limits = torch.finfo(costs.dtype)
    copied = (copying.weights * is_copy).sum(-1).clamp_min(limits.tiny).log()
    mixed = torch.logaddexp(generated.where(in_vocabulary, limits.min), copied)
    return -mixed[labels != -100].mean()


def add_copied_words(scores: torch.Tensor, copying: Copying) -> torch.Tensor:
    """Mix what is generated with what is copied: `log(g_0 softmax(scores)_w + Σ_{i: w_i = w} weights_i)`.

    Only the words of the pair need the mixture; for all others it is `log g_0` plus the logarithm of the softmax.

    Args:
        scores: Of every word of the vocabulary, before the softmax, `(batch, target_length, vocab_size)`.
        copying: What is copied.

    Returns:
        Log-probabilities `(batch, target_length, vocab_size + num_outside_words)`, in single precision at least.
    """
    log_generated, weights, ids, mask, num_outside_words = copying
    same = (ids.unsqueeze(2) == ids.unsqueeze(1)) & mask.bool().unsqueeze(1)
    # A word that stands several times is written once, at its first place, with its whole probability. The others
    # go to a column behind the last, which is cut off.
    is_first = mask.bool() & ~same.tril(-1).any(-1)
    columns = ids.where(is_first, scores.shape[-1] + num_outside_words)
    columns = columns.unsqueeze(1).expand_as(weights)
    scores = at_least_single(scores)
    generated = scores + (log_generated - scores.logsumexp(dim=-1, keepdim=True))
    lowest = torch.finfo(generated.dtype)
    generated = nn.functional.pad(generated, (0, num_outside_words + 1), value=lowest.min)
    copied = (weights @ same.transpose(1, 2).to(weights.dtype)).clamp_min(lowest.tiny).log()
    mixed = torch.logaddexp(generated.gather(-1, columns), copied)
    return generated.scatter(-1, columns, mixed)[..., :-1]
