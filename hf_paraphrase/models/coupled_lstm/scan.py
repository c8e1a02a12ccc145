"""Coupled LSTMs in operations that `torch.export` can trace for sentences of any length."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import nn

from ..layers.scan import scan
from .grid import COUPLINGS


class ScanOrder(NamedTuple):
    """The inputs of a `GridOrder`: numbers of words of X and Y in each row, `(batch,)`, and directions."""

    x_lengths: torch.Tensor
    y_lengths: torch.Tensor
    directions: tuple[tuple[bool, bool], ...]


def scan_coupled_lstm(
    inputs: list[torch.Tensor],
    weights: list[torch.Tensor],
    order: ScanOrder,
    coupling: str,
    features: torch.Tensor | None = None,
) -> torch.Tensor:
    """Do what `coupled_lstm` does, slower: direction after direction, a step for each anti-diagonal.

    At step t the i-th word of X meets the (t - i)-th of Y, so that h and c of the step before are those of the
    neighbor (i, j - 1), and a row further up those of (i - 1, j). What features add
    depends on no state, and joins the inputs.
    """
    n, m = inputs[0].shape[1], inputs[-1].shape[2]
    if features is not None:
        width = features.shape[-1]
        added = (nn.functional.linear(features, weight[:, -width:]) for weight in weights)
        inputs = [grid + part for grid, part in zip(inputs, added, strict=False)] + inputs[len(weights) :]
        weights = [weight[:, :-width] for weight in weights]
    hidden = []
    for flips in order.directions:
        lengths = zip((order.x_lengths, order.y_lengths), (n, m), flips, strict=True)
        x, y = (_reading_order(*side) for side in lengths)
        grids = [_read(grid.expand(-1, n, m, -1), x, y) for grid in inputs]
        hidden.append(_read(_scan_direction(grids, weights, COUPLINGS[coupling]), x, y))
    return reduce(torch.add, hidden)


def _reading_order(lengths: torch.Tensor, size: int, from_end: bool) -> torch.Tensor:
    """Where each row has its words as a direction reads them, then its padding, `(batch, size)`: its own inverse."""
    places = torch.arange(size, device=lengths.device).expand(lengths.shape[0], -1)
    lengths = lengths.unsqueeze(1)
    return torch.where(places < lengths, lengths - 1 - places, places) if from_end else places


def _read(grid: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Put a grid `(batch, n, m, width)` in the order of reading, or back."""
    return _take(_take(grid, x[:, :, None, None], dim=1), y[:, None, :, None], dim=2)


def _take(x: torch.Tensor, places: torch.Tensor, dim: int) -> torch.Tensor:
    """As `take_along_dim`, which wants to know sizes as numbers."""
    shape = [places.shape[other] if other == dim else x.shape[other] for other in range(x.dim())]
    return x.gather(dim, places.expand(shape))


def _scan_direction(
    grids: list[torch.Tensor], weights: list[torch.Tensor], neighbors: tuple[tuple[tuple[int, int], ...], ...]
) -> torch.Tensor:
    """Run from the first words to the last; the neighbors of each LSTM as `COUPLINGS` has them."""
    batch, n, m, _ = grids[0].shape
    count, size = len(weights), weights[0].shape[0] // (3 + len(neighbors[0]))
    i, t = torch.arange(n, device=grids[0].device).unsqueeze(1), torch.arange(n + m - 1, device=grids[0].device)
    j = (t - i)[None, :, :, None]
    grids = [reduce(torch.add, grids)] if count == 1 else grids
    skewed = [_take(grid, j.clamp(0, m - 1), dim=2).permute(2, 0, 1, 3) for grid in grids]
    is_cell = ((j >= 0) & (j < m)).permute(2, 0, 1, 3)

    def before(state: torch.Tensor, steps: tuple[int, int]) -> torch.Tensor:
        return nn.functional.pad(state[:, :-1], (0, 0, 1, 0)) if steps[0] else state

    def step(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, c, inputs, weights = (tensors[k : k + count] for k in (0, count, 2 * count, 3 * count + 1))
        is_cell = tensors[3 * count]
        both, new_h, new_c = torch.cat(h, dim=-1), [], []
        for lane in range(count):
            states = torch.cat([before(both, steps) for steps in neighbors[lane]], dim=-1)
            gates = inputs[lane] + nn.functional.linear(states, weights[lane])
            candidate, output, entry, *forgets = gates.split(size, dim=-1)
            cell = entry.sigmoid() * candidate.tanh()
            for forget, steps in zip(forgets, neighbors[lane], strict=True):
                cell = cell + forget.sigmoid() * before(c[lane], steps)
            new_c.append(torch.where(is_cell, cell, 0.0))
            new_h.append(torch.where(is_cell, output.sigmoid() * cell.tanh(), 0.0))
        return *new_h, *new_c, torch.cat(new_h, dim=-1)

    start = [grids[0].new_zeros(batch, n, size) for _ in range(2 * count)]
    _, (hidden,) = scan(step, start, [*skewed, is_cell], weights)
    t = (i + torch.arange(m, device=i.device))[None, :, :, None]
    return _take(hidden.permute(1, 2, 0, 3), t, dim=2)
