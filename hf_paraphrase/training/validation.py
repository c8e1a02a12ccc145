from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from torch import nn

from .batching import PairCollator, share_batches

__all__ = ["mean_loss"]


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    encoded: Dataset,
    batches: Iterable[np.ndarray],
    collator: PairCollator,
    accelerator: Accelerator,
    stop: Callable[[], bool] = lambda: False,
) -> float | None:
    """The mean negative log-likelihood of all labels, in nats a token, over all processes.

    Dropout is off, and random generators end as they began, so that validating does not change the training.

    Args:
        model: Without the wrapper for several processes.
        encoded: Rows of token ids.
        batches: Row numbers, the same on every process.
        collator: Makes tensors of rows.
        accelerator: Knows the processes.
        stop: Asked before every batch whether to give up; the same on every process.

    Returns:
        The loss, or None if it was given up.
    """
    total = torch.zeros(2, dtype=torch.float64, device=accelerator.device)
    training, devices = model.training, [accelerator.device] if accelerator.device.type == "cuda" else []
    model.eval()
    with torch.random.fork_rng(devices):
        for batch, counts in share_batches(encoded, batches, collator, accelerator):
            if stop():
                total = None
                break
            if counts:
                tokens = (batch["labels"] != -100).sum()
                total += torch.stack([model(**batch).loss.double() * tokens, tokens])
    model.train(training)
    if total is None:
        return None
    loss, tokens = accelerator.reduce(total, "sum").tolist()
    return loss / tokens
