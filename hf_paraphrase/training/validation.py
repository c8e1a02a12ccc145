from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

__all__ = ["add_up", "mean_loss"]


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    loss_sums: Callable[[nn.Module, dict[str, torch.Tensor]], tuple[torch.Tensor, torch.Tensor]],
    shares: Iterable[tuple[dict[str, torch.Tensor], np.ndarray]],
    counts: np.ndarray,
    accelerator: Accelerator,
    stop: Callable[[], bool] = lambda: False,
) -> float | None:
    """The mean loss of a split, for each unit that counts, over all processes.

    Dropout is off, and random generators end as they began, so that validating does not change the training.

    Args:
        model: Without the wrapper for several processes.
        loss_sums: The loss of a batch, as `Task.loss_sums`.
        shares: This process's batches, as of `share_batches`.
        counts: How much each row of the split counts.
        accelerator: Knows the processes.
        stop: Asked before every batch whether to give up; the same on every process.

    Returns:
        The loss, or None if it was given up.
    """
    total, units, stopped = 0.0, 0, False
    training, devices = model.training, [accelerator.device] if accelerator.device.type == "cuda" else []
    model.eval()
    with torch.random.fork_rng(devices):
        for batch, rows in shares:
            stopped = stop()
            if stopped:
                break
            if len(rows):
                total += float(loss_sums(model, batch)[1])
                units += int(counts[rows].sum())
    model.train(training)
    if stopped:
        return None
    all_total, all_units = add_up(accelerator, [total, units])
    return all_total / all_units


def add_up(accelerator: Accelerator, values: list[float]) -> list[float]:
    """Sum each of some numbers over the processes."""
    if accelerator.num_processes == 1:
        return values
    return accelerator.reduce(torch.tensor(values, dtype=torch.float64, device=accelerator.device), "sum").tolist()
