"""Where the cells of a batch of grids stand when they are visited anti-diagonal after anti-diagonal."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch

__all__ = ["COUPLINGS", "DIRECTIONS", "Diagonal", "GridOrder", "Link", "Neighbor", "PairLayout", "WordLayout"]

DIRECTIONS = ((False, False), (False, True), (True, True), (True, False))
"""Whether X and Y are read from their end, in the paper's order of the four directions."""


class Neighbor(NamedTuple):
    """A cell that (i, j) reads: (i - step_x, j - step_y), whose memory passes the forget gate `gate` of `lane`.

    Lanes are LSTMs with a memory of their own: one if coupled tightly, two if loosely. Each has the gates c̃, o, i and
    one forget gate for each memory that it reads, in this order.
    """

    step_x: int
    step_y: int
    lane: int
    gate: int


COUPLINGS = {
    "tight": (Neighbor(0, 1, lane=0, gate=3), Neighbor(1, 0, lane=0, gate=4)),
    "loose": (Neighbor(1, 0, lane=0, gate=3), Neighbor(0, 1, lane=1, gate=3)),
}


class Link(NamedTuple):
    """Which cells of one anti-diagonal have some neighbor, where it stands on the one before, and which have none."""

    readers: slice
    read: slice
    others: tuple[slice, ...]
    neighbor: Neighbor


class Diagonal(NamedTuple):
    """One anti-diagonal: how many cells it has, by increasing i from `first` on, and what they read."""

    size: int
    first: int
    links: tuple[Link, ...]


@lru_cache(maxsize=4096)
def diagonals_of(n: int, m: int, coupling: str) -> tuple[Diagonal, ...]:
    """List the n + m - 1 anti-diagonals of an n × m grid."""
    diagonals, before = [], range(0)
    for t in range(n + m - 1):
        cells = range(max(0, t - m + 1), min(n - 1, t) + 1)
        links = []
        for neighbor in COUPLINGS[coupling] if t else ():
            start = max(cells.start, before.start + neighbor.step_x)
            stop = min(cells.stop, before.stop + neighbor.step_x)
            shift = before.start + neighbor.step_x
            readers, read = slice(start - cells.start, stop - cells.start), slice(start - shift, stop - shift)
            others = slice(0, readers.start), slice(readers.stop, len(cells))
            others = tuple(other for other in others if other.start < other.stop)
            links.append(Link(readers, read, others, neighbor))
        diagonals.append(Diagonal(len(cells), cells.start, tuple(links)))
        before = cells
    return tuple(diagonals)


class PairLayout:
    """Where the rows of each anti-diagonal stand in a grid `(batch, n, m, width)`.

    Args:
        rows: Places in the flat grid, for each anti-diagonal `(cells * directions * batch,)`.
        shape: `(batch, n, m)`.
    """

    def __init__(self, rows: tuple[torch.LongTensor, ...], shape: tuple[int, int, int]):
        self.rows, self.shape = rows, shape

    def lay_out(self, grid: torch.Tensor) -> torch.Tensor:
        """Prepare a grid for `read`."""
        return grid.flatten(0, 2)

    def read(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        """Take what belongs to anti-diagonal `t`, `(cells * directions * batch, width)`."""
        return laid_out.index_select(0, self.rows[t])

    def zeros(self, width: int, like: torch.Tensor) -> torch.Tensor:
        """Make what `add` adds to."""
        return like.new_zeros(self.shape[0] * self.shape[1] * self.shape[2], width)

    def add(self, total: torch.Tensor, t: int, part: torch.Tensor) -> None:
        """Add to all places that `read` takes; its transpose."""
        total.index_add_(0, self.rows[t], part)

    def collect(self, total: torch.Tensor) -> torch.Tensor:
        """Make a grid of what was added; the transpose of `lay_out`."""
        return total.unflatten(0, self.shape)


class WordLayout(PairLayout):
    """The same for a grid that is alike in all columns or all rows, `(batch, n, 1, width)` or `(batch, 1, m, width)`.

    Its words are laid out so that each anti-diagonal's stand together: X as it is read, Y from its end.

    Args:
        rows: Places in the flat grid in the order in which words are laid out.
        slices: What each anti-diagonal has of them.
        shape: The first three sizes of the grid.
    """

    def __init__(self, rows: torch.LongTensor, slices: list[slice], shape: tuple[int, int, int]):
        self.rows, self.slices, self.shape = rows, slices, shape

    def lay_out(self, grid: torch.Tensor) -> torch.Tensor:
        return grid.flatten(0, 2).index_select(0, self.rows)

    def read(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        return laid_out[self.slices[t]]

    def zeros(self, width: int, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(len(self.rows), width)

    def add(self, total: torch.Tensor, t: int, part: torch.Tensor) -> None:
        total[self.slices[t]] += part

    def collect(self, total: torch.Tensor) -> torch.Tensor:
        batch, n, m = self.shape
        return total.new_zeros(batch * n * m, total.shape[1]).index_add_(0, self.rows, total).unflatten(0, self.shape)


class GridOrder:
    """The layouts of a batch of pairs of sentences that are read in some directions.

    Every row is flipped within its own words, so that padding is read last. Only shapes decide what is launched and
    nothing waits for a device, so that all of it can be part of a CUDA graph.

    Args:
        x_lengths: `(batch,)`, words of X in each row.
        y_lengths: `(batch,)`, words of Y in each row.
        n: Width of the batch of X.
        m: Width of the batch of Y.
        directions: Some of `DIRECTIONS`.
    """

    def __init__(
        self,
        x_lengths: torch.LongTensor,
        y_lengths: torch.LongTensor,
        n: int,
        m: int,
        directions: tuple[tuple[bool, bool], ...],
    ):
        batch, device = len(x_lengths), x_lengths.device
        self.shape, self.rows = (batch, n, m), len(directions) * batch
        x = _read_from(x_lengths, n, [from_end for from_end, _ in directions])
        y = _read_from(y_lengths, m, [from_end for _, from_end in directions])
        row = torch.arange(batch, device=device)
        i, j = torch.arange(n, device=device).unsqueeze(1), torch.arange(m, device=device)
        cells = ((i + j) * n + i).flatten().argsort()
        pairs = ((row * n + x[cells // m]) * m + y[cells % m]).flatten()
        diagonals = diagonals_of(n, m, "tight")
        self.pairs = PairLayout(pairs.split([diagonal.size * self.rows for diagonal in diagonals]), self.shape)
        starts = [diagonal.first for diagonal in diagonals]
        self.x = WordLayout((row * n + x).flatten(), self._slices(starts, diagonals), (batch, n, 1))
        starts = [m - 1 - t + diagonal.first for t, diagonal in enumerate(diagonals)]
        self.y = WordLayout((row * m + y).flip(0).flatten(), self._slices(starts, diagonals), (batch, 1, m))

    def _slices(self, starts: list[int], diagonals: tuple[Diagonal, ...]) -> list[slice]:
        return [
            slice(start * self.rows, (start + diagonal.size) * self.rows)
            for start, diagonal in zip(starts, diagonals, strict=True)
        ]

    def layout_of(self, grid: torch.Tensor) -> PairLayout:
        """Find the layout of a grid, whose n or m may be 1 for what is alike in all rows or columns."""
        return next(layout for layout in (self.pairs, self.x, self.y) if layout.shape == grid.shape[:3])


def _read_from(lengths: torch.LongTensor, size: int, from_end: list[bool]) -> torch.LongTensor:
    """List the places `(size, directions, batch)` of each row's words as directions read them, then its padding."""
    forward = torch.arange(size, device=lengths.device).unsqueeze(1).expand(-1, len(lengths))
    backward = torch.where(forward < lengths, lengths - 1 - forward, forward)
    return torch.stack([backward if flipped else forward for flipped in from_end], dim=1)
