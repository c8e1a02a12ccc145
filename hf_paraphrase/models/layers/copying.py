"""The mixture of generated and copied words, from any source."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .precision import at_least_single
from .scan import is_traced


class Copying(NamedTuple):
    """How much the decoder copies from where.

    Args:
        log_generated: Logarithm of the probability of generating, `(batch, target_length, 1)`.
        weights: Probability of copying each word that can be copied, `(batch, target_length, words)`; with that of
            generating they add up to 1.
        ids: These words, `(batch, words)`; from `vocab_size` on, outside the vocabulary.
        mask: `(batch, words)`, 0 at padding.
        num_outside_words: How many words outside the vocabulary the batch can copy.
    """

    log_generated: Tensor
    weights: Tensor
    ids: Tensor
    mask: Tensor
    num_outside_words: int


def copying_loss(scores: Tensor, copying: Copying, labels: Tensor) -> Tensor:
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


def add_copied_words(scores: Tensor, copying: Copying) -> Tensor:
    """Mix generation and copying: `log(g_0 softmax(scores)_w + Σ_{i: w_i = w} weights_i)`.

    Only the words that can be copied need it; for all others it is `log g_0` plus the logarithm of the softmax.

    Args:
        scores: Of every word of the vocabulary, before the softmax, `(batch, target_length, vocab_size)`.
        copying: What is copied.

    Returns:
        Log-probabilities `(batch, target_length, vocab_size + num_outside_words)`, in single precision at least.
    """
    log_generated, weights, ids, mask, num_outside_words = copying
    same = (ids.unsqueeze(2) == ids.unsqueeze(1)) & mask.bool().unsqueeze(1)
    # A repeated word gets its total probability at its first position. The others
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


def count_outside_words(ids: Tensor, vocab_size: int, name: str) -> int:
    """How many words outside the vocabulary a batch can copy; as many as there can be where `torch.export` traces.

    Args:
        ids: Of what is copied, `(batch, words)`.
        vocab_size: The first id of a copied word.
        name: What holds them, for the error.

    Raises:
        ValueError: An id is so high that it numbers no word of these.
    """
    if is_traced():  # there, nothing may depend on values
        return ids.shape[1]
    count = max(0, int(ids.max()) + 1 - vocab_size)
    if count > ids.shape[1]:
        raise ValueError(
            f"{name} holds the id {int(ids.max())}; words outside the vocabulary of {vocab_size} are numbered from "
            "there on, in each anew"
        )
    return count
