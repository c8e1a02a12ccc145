"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), which both stand on the anti-diagonal before its own. So all cells
of one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on
contiguous memory.
"""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from .coupled_lstm_grid import COUPLINGS, GridOrder, GridPart, PairLayout

__all__ = ["coupled_lstm"]

# Looked up once: to choose the overload anew takes longer than a small step's operation.
sigmoid_backward, sigmoid_backward_out = (
    torch.ops.aten.sigmoid_backward.default,
    torch.ops.aten.sigmoid_backward.grad_input,
)


# Compiling would unroll the loop anew for every pair of lengths.
@torch.compiler.disable
def coupled_lstm(
    inputs: list[torch.Tensor], weights: list[torch.Tensor], order: GridOrder, coupling: str
) -> torch.Tensor:
    """Scan a batch of grids in the directions of `order`, and sum the hidden states of all directions.

    Values at padding mean nothing, and no value at a word depends on padding.

    Args:
        inputs: What enters from below, projected to the gates, biases added. In the first block two grids of words,
            X's `(batch, n, 1, width)` and Y's `(batch, 1, m, width)`. Above it grids of pairs, `(batch, n, m, width)`,
            one if coupled tightly. If coupled loosely, the first grid is for LSTM1 and the second for LSTM2.
        weights: Recurrent weights of each LSTM, `(gates * hidden_size, states)`. The states are h(i, j - 1) and
            h(i - 1, j) side by side if coupled tightly; if loosely h(i - 1, j) for LSTM1 and h(i, j - 1) for LSTM2,
            each being h of both LSTMs, side by side. Rows are the gates c̃, o, i and one or two f.
        order: Directions and lengths.
        coupling: `"tight"` or `"loose"`.

    Returns:
        h, `(batch, n, m, hidden_size)`, twice as wide if coupled loosely.
    """
    weights = [weight.to(inputs[0].dtype) for weight in weights]
    is_pairs = [grid.shape[:3] == order.shape for grid in inputs]
    grids = [grid.flatten(0, 2) for grid in inputs]
    return CoupledLstmFunction.apply(order, coupling, is_pairs, *weights, *grids).unflatten(0, order.shape)


class CoupledLstmFunction(torch.autograd.Function):
    """The scan and, by hand, its gradient: automatic differentiation would copy and keep several times as much.

    Every anti-diagonal has tensors of its own, but for h. One for all would be so large that the allocator takes fresh
    pages from the system for it each time, which alone costs half as much as the products.
    """

    @staticmethod
    def forward(ctx, order: GridOrder, coupling: str, is_pairs: list[bool], *tensors):
        weights, grids = tensors[: -len(is_pairs)], tensors[-len(is_pairs) :]
        lanes = [Lane(weight, neighbors) for weight, neighbors in zip(weights, COUPLINGS[coupling], strict=True)]
        saved, hidden = [], []
        for part in order.parts:
            layouts = part.layouts(is_pairs)
            inputs = [(layout, layout.lay_out(grid)) for layout, grid in zip(layouts, grids, strict=True)]
            for layout, laid_out in inputs:
                if layout.copies:
                    lanes[0].to_sigmoid(laid_out)
            hidden.append(scan(part, lanes, by_lane(inputs, lanes), saved))
        ctx.save_for_backward(*weights, *saved)
        ctx.order, ctx.coupling, ctx.is_pairs, ctx.shapes = order, coupling, is_pairs, [grid.shape for grid in grids]
        return torch.cat(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        coupling, saved = COUPLINGS[ctx.coupling], ctx.saved_tensors
        weights, saved = saved[: len(coupling)], saved[len(coupling) :]
        lanes = [Lane(weight, neighbors) for weight, neighbors in zip(weights, coupling, strict=True)]
        grad_weights = [torch.zeros_like(weight) for weight in weights]
        # That of a sum is one number expanded, from which taking rows is several times as slow.
        grad = grad.contiguous()
        grad_grids = [grad.new_zeros(shape) for shape in ctx.shapes]
        size = len(saved) // len(ctx.order.parts)
        for number, part in enumerate(ctx.order.parts):
            layouts = part.layouts(ctx.is_pairs)
            totals = [(layout, layout.begin(grid)) for layout, grid in zip(layouts, grad_grids, strict=True)]
            scan_back(part, lanes, by_lane(totals, lanes), saved[number * size :][:size], grad, grad_weights)
            for (layout, total), grid in zip(totals, grad_grids, strict=True):
                if layout.copies:
                    lanes[0].whole(total)
                layout.end(grid, total)
        for is_pair, grid in zip(ctx.is_pairs, grad_grids, strict=True):
            if is_pair:
                lanes[0].whole(grid)
        for grad_weight in grad_weights:
            lanes[0].whole(grad_weight.t())
        return None, None, None, *grad_weights, *grad_grids


def by_lane(inputs: list, lanes: list[Lane]) -> list[list]:
    """Hand inputs out: all to the one lane, or one to each."""
    return [inputs] if len(lanes) == 1 else [[part] for part in inputs]


def scan(part: GridPart, lanes: list[Lane], inputs, saved: list[torch.Tensor]) -> torch.Tensor:
    """Run through the anti-diagonals of some rows of the batch.

    Args:
        part: The rows, and where they stand.
        lanes: The LSTMs.
        inputs: For each lane, the layouts of its inputs, and the inputs as laid out.
        saved: What the way back needs is appended: c of each lane, then for each anti-diagonal and each lane its
            gates, states and σ(-2c).

    Returns:
        h of all their pairs, summed over the directions.
    """
    width, end = lanes[0].hidden_size, part.diagonals[-1].stop
    all_h = lanes[0].back.new_empty(end, len(lanes) * width)
    all_c = [all_h.new_empty(end, width) for _ in lanes]
    saved += all_c
    for t, (start, stop, neighbors, *_) in enumerate(part.diagonals):
        outputs = all_h[start:stop].chunk(len(lanes), 1)
        for memory in (all_h, *all_c):
            memory[start - part.rows : start] = 0
        for lane, sources, memory, output in zip(lanes, inputs, all_c, outputs, strict=True):
            gates, c, states, c_before = lane.read_inputs(sources, t), memory[start:stop], None, None
            if neighbors is not None:
                states = beside(lane.read_neighbors(all_h, neighbors, part.rows, stop - start))
                c_before = lane.read_neighbors(memory, neighbors, part.rows, stop - start)
            saved += gates, states, lane.step(gates, states, c_before, c, output)
    return torch.nn.functional.embedding_bag(part.visits, all_h, mode="sum")


def scan_back(part: GridPart, lanes: list[Lane], totals, saved, grad: torch.Tensor, grad_weights) -> None:
    """Run back through them.

    Args:
        part: The rows, and where they stand.
        lanes: The LSTMs.
        totals: For each lane, the layouts of its inputs, and the sums of their gradients, which are added to.
        saved: What `scan` appended.
        grad: Gradient of h of all pairs.
        grad_weights: For each lane, the gradient of its weights, which is added to.
    """
    all_c, saved = saved[: len(lanes)], saved[len(lanes) :]
    all_grad_h = grad.index_select(0, part.places)
    all_grad_c = [None] * len(lanes)
    for t, (start, stop, neighbors, *_) in reversed(list(enumerate(part.diagonals))):
        grad_outputs = all_grad_h[start:stop].chunk(len(lanes), 1)
        for number, (lane, grad_output) in enumerate(zip(lanes, grad_outputs, strict=True)):
            gates, states, squashed = saved[3 * (t * len(lanes) + number) :][:3]
            c_before = None
            if neighbors is not None:
                c_before = lane.read_neighbors(all_c[number], neighbors, part.rows, stop - start)
            grad_gates, grad_c = lane.step_back(grad_output, all_grad_c[number], gates, squashed, c_before)
            for layout, total in totals[number]:
                layout.add(total, t, grad_gates)
            if neighbors is not None:
                before = part.diagonals[t - 1]
                first, size = neighbors - before.start, before.stop - before.start
                all_grad_c[number] = lane.forget_back(grad_c, gates, first, part.rows, size)
                grad_h_before = lane.read_neighbors(all_grad_h, neighbors, part.rows, stop - start)
                lane.multiply_back(grad_gates, states, grad_h_before, grad_weights[number])


def beside(neighbors: list[torch.Tensor]) -> torch.Tensor:
    """Lay neighbors beside each other; one alone is not copied."""
    if len(neighbors) == 1:
        return neighbors[0]
    size, width = neighbors[0].shape
    states = neighbors[0].new_empty(size, len(neighbors) * width)
    for part, neighbor in zip(states.chunk(len(neighbors), 1), neighbors, strict=True):
        part.copy_(neighbor)
    return states


class Lane:
    """One LSTM: a step, and its gradient, over all cells of an anti-diagonal in all directions and rows.

    tanh(z) is computed as 1 - 2σ(-2z), for torch's σ takes a fraction of the time of its tanh on a CPU. So σ(-2z)
    stands where c̃ has its place among the gates. On the way back its factor 4 is left out, which `whole` restores.

    Args:
        weight: Recurrent weights, `(gates * hidden_size, states)`, the gates being c̃, o, i and one f a neighbor.
        neighbors: The cells whose h and c it reads, as in `COUPLINGS`: (0, 1), (1, 0), or both, in this order.
    """

    def __init__(self, weight: torch.Tensor, neighbors: tuple[tuple[int, int], ...]):
        self.neighbors = neighbors
        self.n_gates = 3 + len(neighbors)
        self.hidden_size = len(weight) // self.n_gates
        # How many cells behind (i, j - 1) the first of them stands.
        self.shift = neighbors[0][0]
        forth, self.back = weight.clone(), weight.clone()
        self.to_sigmoid(forth.t())
        self.whole(self.back.t())
        self.forth = forth.t()

    def to_sigmoid(self, inputs: torch.Tensor) -> torch.Tensor:
        """Turn inputs of gates, `(…, gates * hidden_size)`, into those of σ, in place."""
        inputs.narrow(1, 0, self.hidden_size).mul_(-2)
        return inputs

    def whole(self, grad_gates: torch.Tensor) -> torch.Tensor:
        """Turn what `step_back` leaves of the gradient of the inputs into all of it, in place."""
        grad_gates.narrow(1, 0, self.hidden_size).mul_(4)
        return grad_gates

    def read_inputs(self, sources: list[tuple[PairLayout, torch.Tensor]], t: int) -> torch.Tensor:
        """Add up the inputs of σ of an anti-diagonal, in memory of its own."""
        if len(sources) == 1:
            ((layout, laid_out),) = sources
            gates = layout.copy(laid_out, t)
            return gates if layout.copies else self.to_sigmoid(gates)
        # Beside a sentence of a single word, the other's words are pairs.
        reads = ((layout, layout.read(laid_out, t)) for layout, laid_out in sources)
        return torch.add(*(part if layout.copies else self.to_sigmoid(part) for layout, part in reads))

    def read_neighbors(self, cells: torch.Tensor, neighbors: int, rows: int, size: int) -> list[torch.Tensor]:
        """See the neighbors of `size` rows among those of all cells, a `(size, width)` each, without a copy."""
        starts = (neighbors + (self.shift + slot) * rows for slot in range(len(self.neighbors)))
        return [cells[start : start + size] for start in starts]

    def step(self, gates, states, c_before, c, h) -> torch.Tensor:
        """Turn the inputs `gates` into the gates, in place, fill `c` and `h`, and return σ(-2c)."""
        if states is not None:
            gates.addmm_(states, self.forth)
        candidate, output, entry, *forgets = gates.chunk(self.n_gates, dim=1)
        gates.sigmoid_()
        torch.addcmul(entry, entry, candidate, value=-2, out=c)
        if c_before is not None:
            for forget, before in zip(forgets, c_before, strict=True):
                c.addcmul_(forget, before)
        squashed = (c * -2).sigmoid_()
        torch.addcmul(output, output, squashed, value=-2, out=h)
        return squashed

    def step_back(self, grad_h, grad_c, gates, squashed, c_before) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of the inputs of σ and of c.

        Given are those of h and, as far as the anti-diagonal after uses it, of c. Both are overwritten.
        """
        candidate, output, entry, *_ = gates.chunk(self.n_gates, dim=1)
        grad_gates = torch.empty_like(gates)
        grad_candidate, grad_output, grad_entry, *grad_forgets = grad_gates.chunk(self.n_gates, dim=1)
        torch.addcmul(grad_h, grad_h, squashed, value=-2, out=grad_output)
        through_h = sigmoid_backward(grad_h.mul_(output), squashed)
        grad_c = through_h.mul_(4) if grad_c is None else grad_c.add_(through_h, alpha=4)
        torch.addcmul(grad_c, grad_c, candidate, value=-2, out=grad_entry)
        torch.mul(grad_c, entry, out=grad_candidate)
        if c_before is None:
            grad_gates[:, 3 * self.hidden_size :] = 0
        else:
            for grad_forget, before in zip(grad_forgets, c_before, strict=True):
                torch.mul(grad_c, before, out=grad_forget)
        return sigmoid_backward_out(grad_gates, gates, grad_input=grad_gates), grad_c

    def forget_back(self, grad_c: torch.Tensor, gates: torch.Tensor, first: int, rows: int, size: int) -> torch.Tensor:
        """Return the gradient of c of the anti-diagonal before, which has `size` rows.

        Args:
            grad_c: That of c of this one.
            gates: Of this one.
            first: Where the neighbors begin, counted from the first row of the one before.
            rows: Rows of a cell.
            size: Rows of the one before.
        """
        place, forgets = rows + first + self.shift * rows, gates.chunk(self.n_gates, dim=1)[3:]
        # With a cell before and after, for neighbors that are none.
        before = grad_c.new_empty(size + 2 * rows, self.hidden_size)
        before[:place] = 0
        before[place + len(grad_c) :] = 0
        torch.mul(grad_c, forgets[0], out=before[place : place + len(grad_c)])
        for forget in forgets[1:]:
            place += rows
            before[place : place + len(grad_c)].addcmul_(grad_c, forget)
        return before[rows:-rows]

    def multiply_back(self, grad_gates, states, grad_h_before: torch.Tensor, grad_weight: torch.Tensor) -> None:
        """Add what gates say of h of their neighbors, as `read_neighbors` sees it, and of the weights."""
        grad_weight.addmm_(grad_gates.t(), states)
        grad_states = grad_gates @ self.back
        # One neighbor after the other: a cell may be a neighbor of two.
        for grad, before in zip(grad_states.chunk(len(self.neighbors), 1), grad_h_before, strict=True):
            before.add_(grad)
