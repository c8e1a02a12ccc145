"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), which both stand on the anti-diagonal before its own. So all cells of
one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on contiguous
memory: the grids of all directions, flipped to start at (0, 0), lie diagonal after diagonal in one buffer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch.autograd.function import once_differentiable

__all__ = ["COUPLINGS", "DIRECTIONS", "GridOrder", "Neighbor", "coupled_lstm"]

DIRECTIONS = ((False, False), (False, True), (True, True), (True, False))
"""Whether X and Y are read from their end, in the paper's order of the four directions."""


class Neighbor(NamedTuple):
    """A cell that (i, j) reads: (i - step_x, j - step_y), whose memory passes the forget gate `gate` of `lane`.

    Lanes are LSTMs with a memory of their own: one if coupled tightly, two if loosely. Each has the gates c̃, o, i and
    as many forget gates as it has memories to read, in this order.
    """

    step_x: int
    step_y: int
    lane: int
    gate: int


COUPLINGS = {
    "tight": (Neighbor(0, 1, lane=0, gate=3), Neighbor(1, 0, lane=0, gate=4)),
    "loose": (Neighbor(1, 0, lane=0, gate=3), Neighbor(0, 1, lane=1, gate=3)),
}


class Diagonal(NamedTuple):
    """Cells of one anti-diagonal, by increasing i.

    For each neighbor, `readers` are the places of those that have it, and `read` its places on the diagonal before.
    """

    size: int
    readers: tuple[slice, ...]
    read: tuple[slice, ...]


@lru_cache(maxsize=4096)
def diagonals_of(n: int, m: int, coupling: str) -> tuple[Diagonal, ...]:
    """Lay out an n × m grid in its n + m - 1 anti-diagonals."""
    diagonals, before = [], range(0)
    for t in range(n + m - 1):
        rows = range(max(0, t - m + 1), min(n - 1, t) + 1)
        readers, read = [], []
        for neighbor in COUPLINGS[coupling]:
            start = max(rows.start, before.start + neighbor.step_x)
            stop = max(start, min(rows.stop, before.stop + neighbor.step_x))
            readers.append(slice(start - rows.start, stop - rows.start))
            shift = neighbor.step_x + before.start
            read.append(slice(start - shift, stop - shift))
        diagonals.append(Diagonal(len(rows), tuple(readers), tuple(read)))
        before = rows
    return tuple(diagonals)


class GridOrder(NamedTuple):
    """Where each cell of a batch of grids stands in the buffer of anti-diagonals, in every direction.

    Args:
        to_diagonals: `(n * m * directions * batch,)`, the row of a flat `(batch, n, m)` grid for each row of the buffer.
        to_grid: `(batch * n * m, directions)`, the rows of the buffer for each row of the flat grid.
        shape: `(batch, n, m)`.
    """

    to_diagonals: torch.LongTensor
    to_grid: torch.LongTensor
    shape: tuple[int, int, int]

    @classmethod
    def of(
        cls,
        x_lengths: torch.LongTensor,
        y_lengths: torch.LongTensor,
        n: int,
        m: int,
        directions: tuple[tuple[bool, bool], ...],
    ) -> GridOrder:
        """Work out the order for rows of these lengths; every row is flipped within its own words.

        Only shapes decide what is launched, so this can be part of a CUDA graph.
        """
        device, batch = x_lengths.device, len(x_lengths)
        # Places (directions, batch, words) of the words that a direction reads first, second and so on.
        x = _read_from(x_lengths, n, [from_end for from_end, _ in directions])
        y = _read_from(y_lengths, m, [from_end for _, from_end in directions])
        i, j = torch.arange(n, device=device).unsqueeze(1), torch.arange(m, device=device)
        order = ((i + j) * n + i).flatten().argsort()
        rank = torch.empty_like(order).scatter_(0, order, torch.arange(n * m, device=device))
        rows = torch.arange(batch, device=device)
        flat = rows.view(-1, 1) * (n * m) + x[..., order // m] * m + y[..., order % m]
        to_diagonals = flat.permute(2, 0, 1).flatten()
        columns = torch.arange(len(directions) * batch, device=device).view(len(directions), batch, 1, 1)
        buffer_rows = rank[x.unsqueeze(-1) * m + y.unsqueeze(-2)] * (len(directions) * batch) + columns
        return cls(to_diagonals, buffer_rows.permute(1, 2, 3, 0).flatten(0, 2).contiguous(), (batch, n, m))

    def scatter(self, grid: torch.Tensor) -> torch.Tensor:
        """Copy a grid `(batch * n * m, width)` to the buffer, once for each direction."""
        return grid.index_select(0, self.to_diagonals)

    def gather(self, buffer: torch.Tensor) -> torch.Tensor:
        """Sum the directions of a buffer into a grid `(batch * n * m, width)`; the transpose of `scatter`."""
        return torch.nn.functional.embedding_bag(self.to_grid, buffer, mode="sum")


def _read_from(lengths: torch.LongTensor, size: int, from_end: list[bool]) -> torch.LongTensor:
    """List the places `(directions, batch, size)` of each row's words as directions read them, then its padding."""
    forward = torch.arange(size, device=lengths.device).expand(len(lengths), -1)
    backward = torch.where(forward < lengths.unsqueeze(1), lengths.unsqueeze(1) - 1 - forward, forward)
    return torch.stack([backward if flipped else forward for flipped in from_end])


# Compiling would unroll the loop anew for every pair of lengths.
@torch.compiler.disable
def coupled_lstm(
    inputs: torch.Tensor, weights: tuple[torch.Tensor, ...], order: GridOrder, coupling: str
) -> torch.Tensor:
    """Scan a grid in the directions of `order` and sum their hidden states.

    Values at padding are finite and mean nothing; no value at a word depends on padding.

    Args:
        inputs: What x_i, y_j and the biases contribute to the gates, before their activations,
            `(batch, n, m, lanes * gates * hidden_size)`.
        weights: Recurrent weights of each lane, `(gates * hidden_size, states)`. Its states are h(i, j - 1) and
            h(i - 1, j) side by side if coupled tightly, and if loosely h(i - 1, j) in the first lane and h(i, j - 1)
            in the second, each h being the lanes' side by side.
        order: From `GridOrder.of`.
        coupling: `"tight"` or `"loose"`.

    Returns:
        `(batch, n, m, lanes * hidden_size)`.
    """
    weights = [weight.to(inputs.dtype) for weight in weights]
    return CoupledLstmFunction.apply(inputs, order, coupling, *weights)


class CoupledLstmFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, order: GridOrder, coupling: str, *weights):
        buffers = Buffers(order.scatter(inputs.flatten(0, 2)), order, coupling)
        h = scan(buffers, weights)
        ctx.save_for_backward(buffers.gates, buffers.states, buffers.memory, *weights)
        ctx.order, ctx.coupling = order, coupling
        return order.gather(h).unflatten(0, order.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gates, states, memory, *weights = ctx.saved_tensors
        buffers = Buffers(gates, ctx.order, ctx.coupling, states, memory)
        grad_gates = scan_back(buffers, weights, ctx.order.scatter(grad.flatten(0, 2)))
        by_lane = zip(buffers.by_lane(grad_gates), buffers.by_lane(states), strict=True)
        grad_weights = [gate.t() @ state for gate, state in by_lane]
        return ctx.order.gather(grad_gates).unflatten(0, ctx.order.shape), None, None, *grad_weights


class Buffers:
    """What the scan reads and writes, all diagonal after diagonal: `rows` rows a cell.

    Args:
        gates: `(cells * rows, lanes * gates * hidden_size)`.
        states: The two h that each cell reads, side by side, `(cells * rows, 2 * lanes * hidden_size)`; zero where
            there is none.
        memory: c, `(cells * rows, lanes * hidden_size)`.
    """

    def __init__(self, gates, order: GridOrder, coupling: str, states=None, memory=None):
        batch, n, m = order.shape
        self.neighbors, self.diagonals = COUPLINGS[coupling], diagonals_of(n, m, coupling)
        self.lanes = 1 + max(neighbor.lane for neighbor in self.neighbors)
        self.gates_per_lane = 1 + max(neighbor.gate for neighbor in self.neighbors)
        self.rows = len(order.to_diagonals) // (n * m)
        self.hidden_size = gates.shape[1] // (self.lanes * self.gates_per_lane)
        self.gates = gates
        self.states = gates.new_zeros(len(gates), 2 * self.lanes * self.hidden_size) if states is None else states
        self.memory = gates.new_empty(len(gates), self.lanes * self.hidden_size) if memory is None else memory

    def by_lane(self, buffer: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut gates or states to what belongs to each lane's product."""
        return buffer.chunk(self.lanes, dim=1)

    def split(self, buffer: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut a buffer into its diagonals, `(size * rows, width)`."""
        return buffer.split([diagonal.size * self.rows for diagonal in self.diagonals])

    def split_cells(self, buffer: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut a buffer into its diagonals, `(size, rows, ...)`."""
        return buffer.unflatten(0, (-1, self.rows)).split([diagonal.size for diagonal in self.diagonals])

    def gate(self, gates: torch.Tensor, number: int) -> torch.Tensor:
        """Take one gate of all lanes, `(cells * rows, lanes, hidden_size)`."""
        return gates.unflatten(1, (self.lanes, self.gates_per_lane, -1))[:, :, number]

    def forget(self, gates: torch.Tensor, neighbor: Neighbor) -> torch.Tensor:
        """Take a neighbor's forget gate, `(cells * rows, hidden_size)`."""
        return self.gate(gates, neighbor.gate)[:, neighbor.lane]


def scan(buffers: Buffers, weights) -> torch.Tensor:
    """Turn the inputs in `buffers.gates` into gates, fill states and memory, and return h, laid out as the memory.

    tanh(z) is computed as 1 - 2σ(-2z): torch's σ takes a fraction of the time of its tanh on a CPU.
    """
    gates, width = buffers.gates, buffers.lanes * buffers.hidden_size
    hidden = torch.empty_like(buffers.memory)
    products = [
        tuple(map(buffers.split, operands))
        for operands in zip(buffers.by_lane(gates), buffers.by_lane(buffers.states), strict=True)
    ]
    transposed = [weight.t() for weight in weights]
    activated, candidates, outputs, entries = (
        buffers.split(part) for part in (gates, *(buffers.gate(gates, number) for number in range(3)))
    )
    forgets = [buffers.split_cells(buffers.forget(gates, neighbor)) for neighbor in buffers.neighbors]
    lanes = buffers.memory.unflatten(1, (buffers.lanes, -1))
    memories, hiddens = buffers.split(lanes), buffers.split(hidden.unflatten(1, (buffers.lanes, -1)))
    memory_cells, hidden_cells = (
        [buffers.split_cells(lanes[:, neighbor.lane]) for neighbor in buffers.neighbors],
        buffers.split_cells(hidden),
    )
    state_cells = [buffers.split_cells(part) for part in buffers.states.split(width, dim=1)]
    scratch = torch.empty_like(max(memories, key=len))
    for t, diagonal in enumerate(buffers.diagonals):
        if t:
            for (gate_parts, state_parts), weight in zip(products, transposed, strict=True):
                gate_parts[t].addmm_(state_parts[t], weight)
        candidates[t].mul_(-2)
        activated[t].sigmoid_()
        c = memories[t]
        torch.addcmul(entries[t], entries[t], candidates[t], value=-2, out=c)
        for slot, (reader, read) in enumerate(zip(diagonal.readers, diagonal.read, strict=True)):
            if t:
                cells = memory_cells[slot]
                cells[t][reader].addcmul_(forgets[slot][t][reader], cells[t - 1][read])
        squashed = scratch[: len(c)]
        torch.mul(c, -2, out=squashed).sigmoid_()
        torch.addcmul(outputs[t], outputs[t], squashed, value=-2, out=hiddens[t])
        if t + 1 < len(buffers.diagonals):
            after = buffers.diagonals[t + 1]
            for slot, (reader, read) in enumerate(zip(after.readers, after.read, strict=True)):
                state_cells[slot][t + 1][reader] = hidden_cells[t][read]
    return hidden


def scan_back(buffers: Buffers, weights, grad_hidden: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the inputs, laid out as the gates, given that of h, which is overwritten."""
    gates, grad = buffers.gates, torch.empty_like(buffers.gates)
    width = buffers.lanes * buffers.hidden_size
    grad_products = [buffers.split(part) for part in buffers.by_lane(grad)]
    activated, grad_activated = buffers.split(gates), buffers.split(grad)
    candidates, outputs, entries = (buffers.split(buffers.gate(gates, number)) for number in range(3))
    grad_candidates, grad_outputs, grad_entries = (buffers.split(buffers.gate(grad, number)) for number in range(3))
    forgets, grad_forgets = (
        [buffers.split_cells(buffers.forget(part, neighbor)) for neighbor in buffers.neighbors]
        for part in (gates, grad)
    )
    lanes = buffers.memory.unflatten(1, (buffers.lanes, -1))
    memories = buffers.split(lanes)
    memory_cells = [buffers.split_cells(lanes[:, neighbor.lane]) for neighbor in buffers.neighbors]
    grad_hiddens = buffers.split(grad_hidden.unflatten(1, (buffers.lanes, -1)))
    grad_hidden_cells = buffers.split_cells(grad_hidden)
    longest = max(len(part) for part in memories)
    shape = (longest, buffers.lanes, buffers.hidden_size)
    scratch, product = grad.new_empty(shape), grad.new_empty(shape)
    grad_memory, grad_before = grad.new_zeros(shape), grad.new_zeros(shape)
    grad_states = grad.new_empty(longest, 2 * width)
    for t in reversed(range(len(buffers.diagonals))):
        diagonal, length = buffers.diagonals[t], len(memories[t])
        dh, dc = grad_hiddens[t], grad_memory[:length]
        s, u = scratch[:length], product[:length]
        torch.mul(memories[t], -2, out=s).sigmoid_()
        torch.addcmul(dh, dh, s, value=-2, out=grad_outputs[t])
        torch.mul(dh, outputs[t], out=u)
        torch.ops.aten.sigmoid_backward(u, s, grad_input=u)
        dc.add_(u, alpha=4)
        torch.addcmul(dc, dc, candidates[t], value=-2, out=grad_entries[t])
        torch.mul(dc, entries[t], out=grad_candidates[t])
        grad_candidates[t].mul_(4)
        if t:
            before = grad_before[: len(memories[t - 1])]
            before.zero_()
        for slot, neighbor in enumerate(buffers.neighbors):
            reader, read = diagonal.readers[slot], diagonal.read[slot]
            grad_forget = grad_forgets[slot][t]
            if diagonal.size > reader.stop - reader.start:
                grad_forget[: reader.start].zero_()
                grad_forget[reader.stop :].zero_()
            if t:
                dc_cells = dc[:, neighbor.lane].unflatten(0, (-1, buffers.rows))[reader]
                torch.mul(dc_cells, memory_cells[slot][t - 1][read], out=grad_forget[reader])
                before[:, neighbor.lane].unflatten(0, (-1, buffers.rows))[read].addcmul_(
                    dc_cells, forgets[slot][t][reader]
                )
        torch.ops.aten.sigmoid_backward(grad_activated[t], activated[t], grad_input=grad_activated[t])
        if t:
            ds = grad_states[:length]
            for part, weight, target in zip(grad_products, weights, buffers.by_lane(ds), strict=True):
                torch.mm(part[t], weight, out=target)
            for slot, part in enumerate(ds.unflatten(0, (-1, buffers.rows)).split(width, dim=-1)):
                grad_hidden_cells[t - 1][diagonal.read[slot]] += part[diagonal.readers[slot]]
        grad_memory, grad_before = grad_before, grad_memory
    return grad
