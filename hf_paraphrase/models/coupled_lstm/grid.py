"""The layout of a batch of grids whose cells are visited by anti-diagonals."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

DIRECTIONS = ((False, False), (False, True), (True, True), (True, False))
"""Whether X and Y are read from their end, in the paper's order of the four directions."""

# The LSTMs of each coupling, each by the cells whose h and c it reads: steps back in X and in Y.
COUPLINGS = {"tight": (((0, 1), (1, 0)),), "loose": (((1, 0),), ((0, 1),))}

# Rows of the longest anti-diagonal that a CPU scans together, for each thread, so that its cache holds all that a step
# needs.
ROWS_AT_ONCE = 1280


class AntiDiagonal(NamedTuple):
    """The position of an anti-diagonal among all rows.

    Its cells come from the last word of X to the first, `rows` rows each, and a cell of zeros comes before them. So
    the neighbors (i, j - 1) of its cells stand together, in the same order, and so do the neighbors (i - 1, j), a cell
    further; other positions are zeros.

    Args:
        rows: Its cells.
        border: The cell of zeros.
        neighbors: The neighbors (i, j - 1), and the neighbors (i - 1, j); none on the first anti-diagonal.
        x: Its words among those of X as they are laid out.
        y: Its words among those of Y.
    """

    rows: slice
    border: slice
    neighbors: tuple[slice, ...]
    x: slice
    y: slice


@lru_cache(maxsize=256)
def diagonals_of(n: int, m: int, rows: int) -> tuple[AntiDiagonal, ...]:
    """List the n + m - 1 anti-diagonals of an n × m grid, with `rows` rows a cell."""
    starts: tuple[int, ...] = ()
    diagonals, start = [], rows
    for t in range(n + m - 1):
        last = min(n - 1, t)
        size = rows * (last + 1 - max(0, t - m + 1))
        at, *neighbors, x, y = (
            slice(first, first + size) for first in (start, *starts, (n - 1 - last) * rows, (t - last) * rows)
        )
        diagonals.append(AntiDiagonal(at, slice(start - rows, start), tuple(neighbors), x, y))
        # The next may begin with a further word of X, whose neighbor (i, j - 1) is none.
        left = start - rows if t + 1 < n else start
        starts = left, left + rows
        start += size + rows
    return tuple(diagonals)


class PairLayout:
    """The places of the rows of each anti-diagonal in a flat grid of pairs, `(batch * n * m, width)`."""

    # Whether `lay_out` copies, and what it returns may be changed; then `read` returns a part of that.
    copies = False

    def __init__(self, rows: tuple[Tensor, ...]):
        self.rows = rows

    def lay_out(self, grid: Tensor) -> Tensor:
        """Prepare a grid for `read`."""
        return grid

    def read(self, laid_out: Tensor, t: int) -> Tensor:
        """Take what belongs to anti-diagonal `t`."""
        return laid_out.index_select(0, self.rows[t])

    def begin(self, grid: Tensor) -> Tensor:
        """Make what `add` adds to, in order to fill a grid of zeros."""
        return grid

    def add(self, total: Tensor, t: int, part: Tensor) -> None:
        """Add to where `read` takes from."""
        total.index_add_(0, self.rows[t], part)

    def end(self, grid: Tensor, total: Tensor) -> None:
        """Fill the grid with what was added."""


class WordLayout(PairLayout):
    """The same for a flat grid of words, `(batch * n, width)` or `(batch * m, width)`.

    Words are laid out so that those of an anti-diagonal are contiguous: X from its end, Y as it is read. `rows` are
    the places of all words in that order, `slices` what each anti-diagonal has of them.
    """

    copies = True

    def __init__(self, rows: Tensor, slices: list[slice]):
        self.order, self.slices = rows, slices

    def lay_out(self, grid: Tensor) -> Tensor:
        return grid.index_select(0, self.order)

    def read(self, laid_out: Tensor, t: int) -> Tensor:
        return laid_out[self.slices[t]]

    def begin(self, grid: Tensor) -> Tensor:
        return grid.new_zeros(len(self.order), grid.shape[1])

    def add(self, total: Tensor, t: int, part: Tensor) -> None:
        total[self.slices[t]].add_(part)

    def end(self, grid: Tensor, total: Tensor) -> None:
        grid.index_add_(0, self.order, total)


class GridPart(NamedTuple):
    """Some rows of the batch, which are scanned together, and their layouts.

    `places` are the pairs that stand in the rows of all anti-diagonals; of zeros, any. `visits`, of shape `(pairs,
    directions)`, gives the row in which each direction visits each pair.
    """

    diagonals: tuple[AntiDiagonal, ...]
    places: Tensor
    visits: Tensor
    pairs: PairLayout
    x: WordLayout
    y: WordLayout

    def layouts(self, is_pairs: list[bool]) -> list[PairLayout]:
        """Return the layout of each input, the first being of pairs or of words of X, the second of Y."""
        return [self.pairs if is_pair else words for is_pair, words in zip(is_pairs, (self.x, self.y), strict=False)]

    def sum_directions(self, rows: Tensor) -> Tensor:
        """Add up what all directions have of each pair, given the rows of all anti-diagonals."""
        return torch.nn.functional.embedding_bag(self.visits, rows, mode="sum")


class GridOrder:
    """The layouts of a batch of pairs of sentences that are read in some directions.

    Every row is flipped within its own words, so that padding is read last. Kernel launches depend on shapes only, and
    nothing waits for the device, so all of it can be part of a CUDA graph.

    Args:
        x_lengths: `(batch,)`, words of X in each row.
        y_lengths: `(batch,)`, words of Y in each row.
        n: Width of the batch of X.
        m: Width of the batch of Y.
        directions: Some of `DIRECTIONS`.
    """

    def __init__(
        self, x_lengths: Tensor, y_lengths: Tensor, n: int, m: int, directions: tuple[tuple[bool, bool], ...]
    ):
        batch, device = len(x_lengths), x_lengths.device
        self.shape = batch, n, m
        # Of shape (words, directions, batch).
        sides = zip((x_lengths, y_lengths), (n, m), zip(*directions, strict=True), strict=True)
        x, y = (
            torch.stack([reading_order(lengths, size, from_end).t() for from_end in ends], dim=1)
            for lengths, size, ends in sides
        )
        row = torch.arange(batch, device=device)
        i, j = torch.arange(n, device=device).unsqueeze(1), torch.arange(m, device=device)
        # The cells of each anti-diagonal, that of zeros first.
        zeros = torch.arange(n + m - 1, device=device) * (n + 1)
        order = torch.cat((((i + j) * (n + 1) + n - i).flatten(), zeros)).argsort()
        cells, ranks = order % (n * m), order.argsort()
        # To read from the end is its own inverse, so the place of a pair is also where a direction has it.
        pairs, visits = (row * n + x[cells // m]) * m + y[cells % m], ranks[x.unsqueeze(1) * m + y]
        words = (row * n + x).flip(0), row * m + y
        rows = ROWS_AT_ONCE * torch.get_num_threads()
        size = batch if device.type != "cpu" else max(1, rows // (min(n, m) * len(directions)))
        parts = zip(*(place.split(size, dim=-1) for place in (pairs, visits, *words)), strict=True)
        self.parts = [self._make_part(*part) for part in parts]

    def _make_part(self, pairs: Tensor, visits: Tensor, x: Tensor, y: Tensor) -> GridPart:
        _, n, m = self.shape
        rows = x[0].numel()
        diagonals, places = diagonals_of(n, m, rows), pairs.flatten()
        visits = visits * rows + torch.arange(rows, device=visits.device).view_as(x[0])
        words = (
            WordLayout(x.flatten(), [diagonal.x for diagonal in diagonals]),
            WordLayout(y.flatten(), [diagonal.y for diagonal in diagonals]),
        )
        pair_layout = PairLayout(tuple(places[diagonal.rows] for diagonal in diagonals))
        return GridPart(diagonals, places, visits.permute(3, 0, 1, 2).flatten(0, 2), pair_layout, *words)


def reading_order(lengths: Tensor, size: int, from_end: bool) -> Tensor:
    """Where each row has its words as a direction reads them, then its padding, `(batch, size)`: its own inverse."""
    places = torch.arange(size, device=lengths.device).expand(lengths.shape[0], -1)
    lengths = lengths.unsqueeze(1)
    return torch.where(places < lengths, lengths - 1 - places, places) if from_end else places
