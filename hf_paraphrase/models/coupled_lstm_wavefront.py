"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), which both stand on the anti-diagonal before its own. So all cells
of one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on
contiguous memory.
"""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from .coupled_lstm_grid import COUPLINGS, GridOrder, GridPart, Link, PairLayout, links_of

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
        _, n, m = order.shape
        saved, hidden = [], []
        for part in order.parts:
            layouts = part.layouts(is_pairs)
            inputs = [(layout, layout.lay_out(grid)) for layout, grid in zip(layouts, grids, strict=True)]
            for layout, laid_out in inputs:
                if layout.copies:
                    lanes[0].to_sigmoid(laid_out)
            hidden.append(scan(part, lanes, by_lane(inputs, lanes), (n, m), saved))
        ctx.save_for_backward(*weights, *saved)
        ctx.order, ctx.coupling, ctx.is_pairs, ctx.shapes = order, coupling, is_pairs, [grid.shape for grid in grids]
        return torch.cat(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (_, n, m), coupling = ctx.order.shape, COUPLINGS[ctx.coupling]
        saved = ctx.saved_tensors
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
            scan_back(part, lanes, by_lane(totals, lanes), (n, m), saved[number * size :][:size], grad, grad_weights)
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


def scan(part: GridPart, lanes: list[Lane], inputs, shape: tuple[int, int], saved: list[torch.Tensor]) -> torch.Tensor:
    """Run through the anti-diagonals of some rows of the batch.

    Args:
        part: The rows, and where they stand.
        lanes: The LSTMs.
        inputs: For each lane, the layouts of its inputs, and the inputs as laid out.
        shape: (n, m).
        saved: What the way back needs is appended: for each anti-diagonal and each lane its gates, states, c and
            σ(-2c).

    Returns:
        h of all their pairs, summed over the directions.
    """
    links = [links_of(*shape, lane.neighbors, part.rows) for lane in lanes]
    all_h = lanes[0].back.new_empty(sum(part.sizes), len(lanes) * lanes[0].hidden_size)
    h_before, memory = None, [None] * len(lanes)
    for t, h in enumerate(all_h.split(part.sizes)):
        for number, (lane, sources, output) in enumerate(zip(lanes, inputs, h.chunk(len(lanes), 1), strict=True)):
            gates = lane.read_inputs(sources, t)
            states = lane.read_states(h_before, links[number][t], len(gates))
            memory[number], squashed = lane.step(gates, states, memory[number], links[number][t], output)
            saved += gates, states, memory[number], squashed
        h_before = h
    return torch.nn.functional.embedding_bag(part.visits, all_h, mode="sum")


def scan_back(
    part: GridPart, lanes: list[Lane], totals, shape: tuple[int, int], saved, grad: torch.Tensor, grad_weights
) -> None:
    """Run back through them.

    Args:
        part: The rows, and where they stand.
        lanes: The LSTMs.
        totals: For each lane, the layouts of its inputs, and the sums of their gradients, which are added to.
        shape: (n, m).
        saved: What `scan` appended.
        grad: Gradient of h of all pairs.
        grad_weights: For each lane, the gradient of its weights, which is added to.
    """
    links = [links_of(*shape, lane.neighbors, part.rows) for lane in lanes]
    steps, all_grad_h = len(part.sizes), grad.index_select(0, part.places).split(part.sizes)
    grad_gates, grad_memory = [None] * len(lanes), [None] * len(lanes)
    for t in reversed(range(steps)):
        grad_h = all_grad_h[t]
        if t + 1 < steps:
            for number, lane in enumerate(lanes):
                states = saved[4 * ((t + 1) * len(lanes) + number) + 1]
                lane.multiply_back(grad_gates[number], states, grad_h, links[number][t + 1], grad_weights[number])
        for number, (lane, grad_output) in enumerate(zip(lanes, grad_h.chunk(len(lanes), dim=1), strict=True)):
            place = 4 * (t * len(lanes) + number)
            gates, _, _, squashed = saved[place : place + 4]
            c_before = saved[place - 4 * len(lanes) + 2] if t else None
            grad_gates[number], grad_memory[number] = lane.step_back(
                grad_output, grad_memory[number], gates, squashed, c_before, links[number][t]
            )
            for layout, total in totals[number]:
                layout.add(total, t, grad_gates[number])


class Lane:
    """One LSTM: a step, and its gradient, over all cells of an anti-diagonal in all directions and rows.

    tanh(z) is computed as 1 - 2σ(-2z), for torch's σ takes a fraction of the time of its tanh on a CPU. So σ(-2z)
    stands where c̃ has its place among the gates. On the way back its factor 4 is left out, which `whole` restores.

    Args:
        weight: Recurrent weights, `(gates * hidden_size, states)`, the gates being c̃, o, i and one f a neighbor.
        neighbors: The cells whose h and c it reads, as in `COUPLINGS`.
    """

    def __init__(self, weight: torch.Tensor, neighbors: tuple[tuple[int, int], ...]):
        self.neighbors = neighbors
        self.n_gates = 3 + len(neighbors)
        self.hidden_size = len(weight) // self.n_gates
        self.n_states, self.width = weight.shape[1], weight.shape[1] // len(neighbors)
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

    def read_states(self, h_before: torch.Tensor | None, links: tuple[Link, ...], rows: int) -> torch.Tensor:
        """Lay the neighbors' h beside each other, zeros where there is none; nothing on the first anti-diagonal."""
        states = self.back.new_empty(rows if links else 0, self.n_states)
        for slot, (readers, read, others, _) in enumerate(links):
            part = states.narrow(1, slot * self.width, self.width)
            part[readers] = h_before[read]
            for other in others:
                part[other] = 0
        return states

    def step(
        self, gates, states, c_before, links: tuple[Link, ...], h: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Turn the inputs `gates` into the gates, in place, fill `h`, and return c and σ(-2c)."""
        if links:
            gates.addmm_(states, self.forth)
        candidate, output, entry, *forgets = gates.chunk(self.n_gates, dim=1)
        gates.sigmoid_()
        c = torch.addcmul(entry, entry, candidate, value=-2)
        for forget, (readers, read, *_) in zip(forgets, links, strict=False):
            c[readers].addcmul_(forget[readers], c_before[read])
        squashed = (c * -2).sigmoid_()
        torch.addcmul(output, output, squashed, value=-2, out=h)
        return c, squashed

    def step_back(self, grad_h, grad_c, gates, squashed, c_before, links) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the gradient of the inputs, and that of c of the anti-diagonal before.

        Given are those of its own h and, as far as the one after uses it, of its own c. Both are overwritten.
        """
        candidate, output, entry, *forgets = gates.chunk(self.n_gates, dim=1)
        grad_gates = torch.empty_like(gates)
        grad_candidate, grad_output, grad_entry, *grad_forgets = grad_gates.chunk(self.n_gates, dim=1)
        torch.addcmul(grad_h, grad_h, squashed, value=-2, out=grad_output)
        through_h = sigmoid_backward(grad_h.mul_(output), squashed)
        grad_c = through_h.mul_(4) if grad_c is None else grad_c.add_(through_h, alpha=4)
        torch.addcmul(grad_c, grad_c, candidate, value=-2, out=grad_entry)
        torch.mul(grad_c, entry, out=grad_candidate)
        if not links:
            grad_gates[:, 3 * self.hidden_size :] = 0
            return sigmoid_backward_out(grad_gates, gates, grad_input=grad_gates), None
        grad_c_before = torch.empty_like(c_before)
        for slot, (forget, grad_forget, link) in enumerate(zip(forgets, grad_forgets, links, strict=True)):
            for other in link.others:
                grad_forget[other] = 0
            grad, forget = grad_c[link.readers], forget[link.readers]
            torch.mul(grad, c_before[link.read], out=grad_forget[link.readers])
            if slot:
                grad_c_before[link.read].addcmul_(grad, forget)
            else:
                for unread in link.unread:
                    grad_c_before[unread] = 0
                torch.mul(grad, forget, out=grad_c_before[link.read])
        return sigmoid_backward_out(grad_gates, gates, grad_input=grad_gates), grad_c_before

    def multiply_back(self, grad_gates, states, grad_h_before, links: tuple[Link, ...], grad_weight) -> None:
        """Add what gates say of h of the anti-diagonal before, and of the weights, to the gradients of those."""
        grad_weight.addmm_(grad_gates.t(), states)
        grad_states = grad_gates @ self.back
        for part, (readers, read, *_) in zip(grad_states.chunk(len(links), dim=1), links, strict=True):
            grad_h_before[read].add_(part[readers])
