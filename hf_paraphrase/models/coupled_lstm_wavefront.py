"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), which both stand on the anti-diagonal before its own. So all cells
of one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on
contiguous memory. Each direction has a grid of its own that starts at (0, 0), and an index into the common one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch.autograd.function import once_differentiable

__all__ = ["DIRECTIONS", "GridOrder", "coupled_lstm"]

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
    """Where on one anti-diagonal stand the cells that have some neighbor, and where it stands on the one before."""

    readers: slice
    read: slice
    neighbor: Neighbor


@lru_cache(maxsize=4096)
def diagonals_of(n: int, m: int, coupling: str) -> tuple[tuple[int, tuple[Link, ...]], ...]:
    """List the n + m - 1 anti-diagonals of a grid, cells by increasing i: the size and the links of each."""
    diagonals, before = [], range(0)
    for t in range(n + m - 1):
        rows = range(max(0, t - m + 1), min(n - 1, t) + 1)
        links = []
        for neighbor in COUPLINGS[coupling] if t else ():
            start = max(rows.start, before.start + neighbor.step_x)
            stop = min(rows.stop, before.stop + neighbor.step_x)
            shift = before.start + neighbor.step_x
            readers, read = slice(start - rows.start, stop - rows.start), slice(start - shift, stop - shift)
            links.append(Link(readers, read, neighbor))
        diagonals.append((len(rows), tuple(links)))
        before = rows
    return tuple(diagonals)


class GridOrder:
    """Which words each direction reads at each cell, anti-diagonal after anti-diagonal, for a batch of pairs.

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
        device, self.shape = x_lengths.device, (len(x_lengths), n, m)
        self.n_pairs = len(x_lengths) * n * m
        self.rows = len(directions) * len(x_lengths)
        i, j = torch.arange(n, device=device).unsqueeze(1), torch.arange(m, device=device)
        cells = ((i + j) * n + i).flatten().argsort()
        # Of shape (cells, directions, batch).
        self._x = _read_from(x_lengths, n, [from_end for from_end, _ in directions])[cells // m]
        self._y = _read_from(y_lengths, m, [from_end for _, from_end in directions])[cells % m]
        self._batch = torch.arange(len(x_lengths), device=device)
        self.pair_rows = self.rows_of(n, m)

    def rows_of(self, n: int, m: int) -> tuple[torch.LongTensor, ...]:
        """Say where each anti-diagonal's inputs stand in a flat grid `(batch, n, m)`, a size of 1 being repeated."""
        rows = (self._batch * n + (self._x if n > 1 else 0)) * m + (self._y if m > 1 else 0)
        rows = rows.expand_as(self._x).reshape(-1)
        _, n, m = self.shape
        return rows.split([size * self.rows for size, _ in diagonals_of(n, m, "tight")])


def _read_from(lengths: torch.LongTensor, size: int, from_end: list[bool]) -> torch.LongTensor:
    """List the places `(size, directions, batch)` of each row's words as directions read them, then its padding."""
    forward = torch.arange(size, device=lengths.device).unsqueeze(1).expand(-1, len(lengths))
    backward = torch.where(forward < lengths, lengths - 1 - forward, forward)
    return torch.stack([backward if flipped else forward for flipped in from_end], dim=1)


# Compiling would unroll the loop anew for every pair of lengths.
@torch.compiler.disable
def coupled_lstm(
    inputs: list[torch.Tensor], weights: list[torch.Tensor], order: GridOrder, coupling: str
) -> torch.Tensor:
    """Scan a batch of grids in the directions of `order`, and sum the hidden states of all directions.

    Values at padding mean nothing, and no value at a word depends on padding.

    Args:
        inputs: What enters from below, projected to the gates, biases added: grids `(batch, n, m, width)`, where n or
            m may be 1 for what is the same in the whole column or row. Coupled tightly, any number of them, which are
            added; coupled loosely, one for each LSTM.
        weights: Recurrent weights of each LSTM, `(gates * hidden_size, states)`. The states are h(i, j - 1) and
            h(i - 1, j) side by side if coupled tightly; if loosely h(i - 1, j) for the first LSTM and h(i, j - 1) for
            the second, each being h of both, side by side. Rows are the gates c̃, o, i and one or two f.
        order: Directions and lengths.
        coupling: `"tight"` or `"loose"`.

    Returns:
        h, `(batch, n, m, hidden_size)`, twice as wide if coupled loosely.
    """
    weights = [weight.to(inputs[0].dtype) for weight in weights]
    return CoupledLstmFunction.apply(order, coupling, len(inputs), *inputs, *weights)


class CoupledLstmFunction(torch.autograd.Function):
    """The scan and, by hand, its gradient: automatic differentiation would copy and keep several times as much.

    Every anti-diagonal has tensors of its own. One for all would be so large that the allocator takes fresh pages from
    the system for it each time, which alone costs half as much as the products.
    """

    @staticmethod
    def forward(ctx, order: GridOrder, coupling: str, n_inputs: int, *tensors):
        inputs, weights = tensors[:n_inputs], tensors[n_inputs:]
        scan, tables = Scan(order, coupling, weights), [grid.flatten(0, 2) for grid in inputs]
        sources = [order.rows_of(*grid.shape[1:3]) for grid in inputs]
        summed = tables[0].new_zeros(order.n_pairs, scan.lanes * scan.hidden_size)
        gates, hidden, memory = [], [], []
        for t, rows in enumerate(order.pair_rows):
            gates.append(scan.read_inputs(tables, [source[t] for source in sources]))
            h, c = scan.step(t, gates[t], *((hidden[t - 1], memory[t - 1]) if t else (None, None)))
            summed.index_add_(0, rows, h.flatten(0, 1).flatten(1))
            hidden.append(h)
            memory.append(c)
        ctx.save_for_backward(*weights, *gates, *hidden, *memory)
        ctx.order, ctx.coupling, ctx.sources, ctx.shapes = order, coupling, sources, [grid.shape for grid in inputs]
        return summed.unflatten(0, order.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        order, steps = ctx.order, len(ctx.order.pair_rows)
        weights = ctx.saved_tensors[: -3 * steps]
        gates, hidden, memory = (ctx.saved_tensors[len(weights) + k * steps :][:steps] for k in range(3))
        scan, grad = Scan(order, ctx.coupling, weights), grad.flatten(0, 2)
        grad_tables = [grad.new_zeros(shape[:3].numel(), shape[3]) for shape in ctx.shapes]
        grad_weights = [torch.zeros_like(weight) for weight in weights]
        grad_h, grad_c = scan.no_gradient(steps - 1, grad), scan.no_gradient(steps - 1, grad)
        for t in reversed(range(steps)):
            grad_h += grad.index_select(0, order.pair_rows[t]).view_as(grad_h)
            before = (hidden[t - 1], memory[t - 1]) if t else (None, None)
            grad_gates, grad_h, grad_c = scan.step_back(t, grad_h, grad_c, gates[t], memory[t], *before, grad_weights)
            for lane, (table, source) in enumerate(zip(grad_tables, ctx.sources, strict=True)):
                table.index_add_(0, source[t], scan.by_lane(grad_gates)[lane % scan.lanes])
        grad_inputs = [table.view(shape) for table, shape in zip(grad_tables, ctx.shapes, strict=True)]
        return None, None, None, *grad_inputs, *grad_weights


class Scan:
    """One step of the scan, and one of its gradient, over all cells of an anti-diagonal and all rows of the batch.

    Gates are `(cells * rows, lanes * gates * hidden_size)`, h and c `(cells, rows, lanes, hidden_size)`. tanh(z) is
    computed as 1 - 2σ(-2z), for torch's σ takes a fraction of the time of its tanh on a CPU; where c̃ has its place
    among the gates stands σ(-2z).

    Args:
        order: Lengths and directions.
        coupling: `"tight"` or `"loose"`.
        weights: Recurrent weights of each lane, `(gates * hidden_size, states)`.
    """

    def __init__(self, order: GridOrder, coupling: str, weights: tuple[torch.Tensor, ...]):
        _, n, m = order.shape
        self.diagonals, self.rows, self.weights = diagonals_of(n, m, coupling), order.rows, weights
        self.lanes = len(weights)
        self.gates_per_lane = 1 + max(neighbor.gate for neighbor in COUPLINGS[coupling])
        self.hidden_size = weights[0].shape[0] // self.gates_per_lane

    def by_lane(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut gates or states to the columns of each lane."""
        return tensor.chunk(self.lanes, dim=1)

    def read_inputs(self, tables: list[torch.Tensor], rows: list[torch.LongTensor]) -> torch.Tensor:
        """Collect what enters the cells of one anti-diagonal from below."""
        parts = [table.index_select(0, row) for table, row in zip(tables, rows, strict=True)]
        if self.lanes > 1:
            return torch.cat(parts, dim=1)
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    def step(self, t: int, gates: torch.Tensor, h_before, c_before) -> tuple[torch.Tensor, torch.Tensor]:
        """Turn the inputs `gates` of anti-diagonal `t` into its gates, in place, and return its h and c."""
        if t:
            states = self._states(t, h_before)
            for gate, state, weight in zip(self.by_lane(gates), self.by_lane(states), self.weights, strict=True):
                gate.addmm_(state, weight.t())
        by_gate = self._by_gate(gates)
        candidate, output, entry = by_gate[:3]
        candidate.mul_(-2)
        gates.sigmoid_()
        c = torch.addcmul(entry, entry, candidate, value=-2)
        for readers, read, (_, _, lane, gate) in self.diagonals[t][1]:
            c[readers, :, lane].addcmul_(by_gate[gate][readers, :, lane], c_before[read, :, lane])
        squashed = (c * -2).sigmoid_()
        return torch.addcmul(output, output, squashed, value=-2), c

    def step_back(self, t: int, grad_h, grad_c, gates, c, h_before, c_before, grad_weights):
        """Return the gradient of the inputs of anti-diagonal `t`, and those of h and c of the one before.

        Given are those of its own h and c, the latter as far as it comes from the one after. Adds to `grad_weights`.
        """
        by_gate, grad_gates = self._by_gate(gates), torch.empty_like(gates)
        grad_by_gate = self._by_gate(grad_gates)
        candidate, output, entry = by_gate[:3]
        squashed = (c * -2).sigmoid_()
        torch.addcmul(grad_h, grad_h, squashed, value=-2, out=grad_by_gate[1])
        grad_c = grad_c.add_(torch.ops.aten.sigmoid_backward(grad_h * output, squashed), alpha=4)
        torch.addcmul(grad_c, grad_c, candidate, value=-2, out=grad_by_gate[2])
        torch.mul(grad_c, entry, out=grad_by_gate[0]).mul_(4)
        grad_c_before = self.no_gradient(t - 1, gates)
        for gate in grad_by_gate[3:]:
            gate.zero_()
        for readers, read, (_, _, lane, gate) in self.diagonals[t][1]:
            grad = grad_c[readers, :, lane]
            torch.mul(grad, c_before[read, :, lane], out=grad_by_gate[gate][readers, :, lane])
            grad_c_before[read, :, lane].addcmul_(grad, by_gate[gate][readers, :, lane])
        torch.ops.aten.sigmoid_backward(grad_gates, gates, grad_input=grad_gates)
        if not t:
            return grad_gates, None, None
        return grad_gates, self._back_to_states(t, grad_gates, h_before, grad_weights), grad_c_before

    def no_gradient(self, t: int, like: torch.Tensor) -> torch.Tensor:
        """Zeros for h or c of anti-diagonal `t`."""
        return like.new_zeros(self.diagonals[t][0], self.rows, self.lanes, self.hidden_size)

    def _by_gate(self, gates: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return gates.view(-1, self.rows, self.lanes, self.gates_per_lane, self.hidden_size).unbind(3)

    def _states(self, t: int, h_before: torch.Tensor) -> torch.Tensor:
        """Lay both neighbors' h beside each other, `(cells * rows, 2 * lanes * hidden_size)`, zeros where none is."""
        size, links = self.diagonals[t]
        states = h_before.new_zeros(size, self.rows, 2, self.lanes, self.hidden_size)
        for slot, (readers, read, _) in enumerate(links):
            states[readers, :, slot] = h_before[read]
        return states.view(size * self.rows, -1)

    def _back_to_states(self, t: int, grad_gates, h_before, grad_weights) -> torch.Tensor:
        """Go back through the product to h of the anti-diagonal before, and to the weights."""
        states = self._states(t, h_before)
        grad_states = torch.empty_like(states)
        lanes = (self.by_lane(part) for part in (grad_gates, states, grad_states))
        for gate, state, grad_state, weight, total in zip(*lanes, self.weights, grad_weights, strict=True):
            torch.mm(gate, weight, out=grad_state)
            total.addmm_(gate.t(), state)
        grad_h = torch.zeros_like(h_before)
        size, links = self.diagonals[t]
        grad_states = grad_states.view(size, self.rows, 2, self.lanes, self.hidden_size)
        for slot, (readers, read, _) in enumerate(links):
            grad_h[read] += grad_states[readers, :, slot]
        return grad_h
