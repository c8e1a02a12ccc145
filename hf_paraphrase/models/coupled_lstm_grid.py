"""Where the cells of a batch of grids stand when they are visited anti-diagonal after anti-diagonal."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch

__all__ = ["COUPLINGS", "DIRECTIONS", "GridOrder", "GridPart", "Link", "PairLayout", "WordLayout", "links_of"]

DIRECTIONS = ((False, False), (False, True), (True, True), (True, False))
"""Whether X and Y are read from their end, in the paper's order of the four directions."""

# The LSTMs of each coupling, each by the cells whose h and c it reads: steps back in X and in Y.
COUPLINGS = {"tight": (((0, 1), (1, 0)),), "loose": (((1, 0),), ((0, 1),))}

# Rows of the longest anti-diagonal that a CPU scans together, for each thread, so that its cache holds all that a step
# needs.
ROWS_AT_ONCE = 1280


class Link(NamedTuple):
    """Which rows of an anti-diagonal have some neighbor, where it stands on the one before, and which have none.

    `unread` are the rows of the one before that are nobody's neighbor.
    """

    readers: slice
    read: slice
    others: tuple[slice, ...]
    unread: tuple[slice, ...]


@lru_cache(maxsize=256)
def diagonals_of(n: int, m: int) -> tuple[range, ...]:
    """List for each of the n + m - 1 anti-diagonals of an n × m grid the i of its cells."""
    return tuple(range(max(0, t - m + 1), min(n - 1, t) + 1) for t in range(n + m - 1))


@lru_cache(maxsize=256)
def links_of(n: int, m: int, neighbors: tuple[tuple[int, int], ...], rows: int) -> tuple[tuple[Link, ...], ...]:
    """Link each anti-diagonal of an n × m grid, with `rows` rows a cell, to the one before."""
    diagonals = diagonals_of(n, m)
    return ((),) + tuple(
        tuple(_link(cells, before, step_x, rows) for step_x, _ in neighbors)
        for before, cells in zip(diagonals, diagonals[1:], strict=False)
    )


def _link(cells: range, before: range, step_x: int, rows: int) -> Link:
    # Those of `before` by the i of the cells that read them.
    before = range(before.start + step_x, before.stop + step_x)
    shared = range(max(cells.start, before.start), min(cells.stop, before.stop))
    return Link(
        _rows_of(shared, cells, rows),
        _rows_of(shared, before, rows),
        _rest(shared, cells, rows),
        _rest(shared, before, rows),
    )


def _rows_of(some: range, cells: range, rows: int) -> slice:
    return slice((some.start - cells.start) * rows, (some.stop - cells.start) * rows)


def _rest(some: range, cells: range, rows: int) -> tuple[slice, ...]:
    beside = range(cells.start, some.start), range(some.stop, cells.stop)
    return tuple(_rows_of(part, cells, rows) for part in beside if part)


class PairLayout:
    """Where the rows of each anti-diagonal stand in a flat grid of pairs, `(batch * n * m, width)`.

    Args:
        rows: For each anti-diagonal, their places.
    """

    # Whether `lay_out` copies, and what it returns may be changed.
    copies = False

    def __init__(self, rows: tuple[torch.LongTensor, ...]):
        self.rows = rows

    def lay_out(self, grid: torch.Tensor) -> torch.Tensor:
        """Prepare a grid for `read` and `copy`."""
        return grid

    def read(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        """Take what belongs to anti-diagonal `t`."""
        return laid_out.index_select(0, self.rows[t])

    def copy(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        """Take the same, to be changed."""
        return laid_out.index_select(0, self.rows[t])

    def begin(self, grid: torch.Tensor) -> torch.Tensor:
        """Make what `add` adds to, in order to fill a grid of zeros."""
        return grid

    def add(self, total: torch.Tensor, t: int, part: torch.Tensor) -> None:
        """Add to where `read` takes from."""
        total.index_add_(0, self.rows[t], part)

    def end(self, grid: torch.Tensor, total: torch.Tensor) -> None:
        """Fill the grid with what was added."""


class WordLayout(PairLayout):
    """The same for a flat grid of words, `(batch * n, width)` or `(batch * m, width)`.

    Words are laid out so that those of an anti-diagonal stand together: X as it is read, Y from its end.

    Args:
        rows: The places of all words, in that order.
        slices: What each anti-diagonal has of them.
    """

    copies = True

    def __init__(self, rows: torch.LongTensor, slices: list[slice]):
        self.rows, self.slices = rows, slices

    def lay_out(self, grid: torch.Tensor) -> torch.Tensor:
        return grid.index_select(0, self.rows)

    def read(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        return laid_out[self.slices[t]]

    def copy(self, laid_out: torch.Tensor, t: int) -> torch.Tensor:
        return laid_out[self.slices[t]].clone()

    def begin(self, grid: torch.Tensor) -> torch.Tensor:
        return grid.new_zeros(len(self.rows), grid.shape[1])

    def add(self, total: torch.Tensor, t: int, part: torch.Tensor) -> None:
        total[self.slices[t]].add_(part)

    def end(self, grid: torch.Tensor, total: torch.Tensor) -> None:
        grid.index_add_(0, self.rows, total)


class GridPart(NamedTuple):
    """Some rows of the batch, which are scanned together: `rows` rows a cell, and their layouts.

    `places` are those of all pairs, anti-diagonal after anti-diagonal, of which each has one of `sizes`. `visits`, of
    shape `(pairs, directions)`, tells for each pair where in that order each direction comes to it.
    """

    rows: int
    places: torch.LongTensor
    visits: torch.LongTensor
    sizes: list[int]
    pairs: PairLayout
    x: WordLayout
    y: WordLayout

    def layouts(self, is_pairs: list[bool]) -> list[PairLayout]:
        """Return the layout of each input, the first being of pairs or of words of X, the second of Y."""
        return [self.pairs if is_pair else words for is_pair, words in zip(is_pairs, (self.x, self.y), strict=False)]


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
        self.shape = batch, n, m
        # Of shape (words, directions, batch).
        x = _read_from(x_lengths, n, [from_end for from_end, _ in directions])
        y = _read_from(y_lengths, m, [from_end for _, from_end in directions])
        row = torch.arange(batch, device=device)
        i, j = torch.arange(n, device=device).unsqueeze(1), torch.arange(m, device=device)
        cells = ((i + j) * n + i).flatten().argsort()
        # To read from the end is its own inverse, so the place of a pair is also where a direction has it.
        ranks = cells.argsort()[x.unsqueeze(1) * m + y]
        places = (row * n + x[cells // m]) * m + y[cells % m], ranks, row * n + x, (row * m + y).flip(0)
        rows = ROWS_AT_ONCE * torch.get_num_threads()
        size = batch if device.type != "cpu" else max(1, rows // (min(n, m) * len(directions)))
        parts = zip(*(place.split(size, dim=-1) for place in places), strict=True)
        self.parts = [self._make_part(*part) for part in parts]

    def _make_part(
        self, pairs: torch.LongTensor, ranks: torch.LongTensor, x: torch.LongTensor, y: torch.LongTensor
    ) -> GridPart:
        _, n, m = self.shape
        rows, diagonals = x[0].numel(), diagonals_of(n, m)
        sizes = [len(cells) * rows for cells in diagonals]
        starts_x = [cells.start * rows for cells in diagonals]
        starts_y = [(m - 1 - t + cells.start) * rows for t, cells in enumerate(diagonals)]
        slices = (
            [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
            for starts in (starts_x, starts_y)
        )
        words = (WordLayout(*both) for both in zip((x.flatten(), y.flatten()), slices, strict=True))
        places = pairs.flatten()
        visits = ranks * rows + torch.arange(rows, device=ranks.device).view_as(x[0])
        visits = visits.permute(3, 0, 1, 2).flatten(0, 2)
        return GridPart(rows, places, visits, sizes, PairLayout(places.split(sizes)), *words)


def _read_from(lengths: torch.LongTensor, size: int, from_end: list[bool]) -> torch.LongTensor:
    """List the places `(size, directions, batch)` of each row's words as directions read them, then its padding."""
    forward = torch.arange(size, device=lengths.device).unsqueeze(1).expand(-1, len(lengths))
    backward = torch.where(forward < lengths, lengths - 1 - forward, forward)
    return torch.stack([backward if flipped else forward for flipped in from_end], dim=1)
