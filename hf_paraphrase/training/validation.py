from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from torch import nn

from .batching import PairCollator, share_batches

__all__ = ["add_up", "mean_loss"]


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
    total, tokens, stopped = 0.0, 0, False
    training, devices = model.training, [accelerator.device] if accelerator.device.type == "cuda" else []
    model.eval()
    with torch.random.fork_rng(devices):
        for batch, counts in share_batches(encoded, batches, collator, accelerator):
            stopped = stop()
            if stopped:
                break
            if counts:
                share = int((batch["labels"] != -100).sum())
                total += float(model(**batch).loss) * share
                tokens += share
    model.train(training)
    if stopped:
        return None
    total, tokens = add_up(accelerator, [total, tokens])
    return total / tokens


def add_up(accelerator: Accelerator, values: list[float]) -> list[float]:
    """Sum each of some numbers over the processes."""
    if accelerator.num_processes == 1:
        return values
    return accelerator.reduce(torch.tensor(values, dtype=torch.float64, device=accelerator.device), "sum").tolist()
