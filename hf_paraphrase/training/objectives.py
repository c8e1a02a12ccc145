from __future__ import annotations

import torch
from torch import nn

from ..models.layers.precision import at_least_single

__all__ = ["cross_entropy_sums"]


def cross_entropy_sums(
    model: nn.Module, batch: dict[str, torch.Tensor], label_smoothing: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """The negative log-likelihood of a batch's labels in nats, summed over tokens.

    Sums, because a step may consist of several batches on several processes: only the number of tokens in the whole
    step makes a mean that does not depend on how the step was divided.

    Args:
        model: Returns `loss`, a mean over the labels that are not -100, and `logits`.
        batch: What its forward takes, `labels` among it; at least one label is not -100.
        label_smoothing: Part of each target's probability that is spread over all words (Szegedy et al. 2016).

    Returns:
        The loss to minimise, and the negative log-likelihood to report; the same where nothing is smoothed.
    """
    labels = batch["labels"]
    outputs = model(**batch)
    likelihood = outputs.loss * (labels != -100).sum()
    if not label_smoothing:
        return likelihood, likelihood.detach()
    logits = at_least_single(outputs.logits.flatten(0, 1))
    smoothed = nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum", label_smoothing=label_smoothing)
    return smoothed, likelihood.detach()
