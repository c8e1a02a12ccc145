"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), which both stand on the anti-diagonal before its own. So all cells
of one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on
contiguous memory.
"""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from .coupled_lstm_grid import COUPLINGS, GridOrder, diagonals_of

__all__ = ["coupled_lstm"]


# Compiling would unroll the loop anew for every pair of lengths.
@torch.compiler.disable
def coupled_lstm(
    inputs: list[torch.Tensor], weights: list[torch.Tensor], order: GridOrder, coupling: str
) -> torch.Tensor:
    """Scan a batch of grids in the directions of `order`, and sum the hidden states of all directions.

    Values at padding mean nothing, and no value at a word depends on padding.

    Args:
        inputs: What enters from below, projected to the gates, biases added, each `(batch, n, m, width)`: one grid of
            pairs, or two of words, X's with m = 1 and Y's with n = 1. Two are added if coupled tightly; if loosely,
            the first is for the first LSTM and the second for the second.
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
        scan, layouts = Scan(order, coupling, weights), [order.layout_of(grid) for grid in inputs]
        laid_out = [layout.lay_out(grid) for layout, grid in zip(layouts, inputs, strict=True)]
        summed = order.pairs.zeros(scan.lanes * scan.hidden_size, like=inputs[0])
        gates, hidden, memory = [], [], []
        for t in range(len(scan.diagonals)):
            gates.append(scan.combine([layout.read(grid, t) for layout, grid in zip(layouts, laid_out, strict=True)]))
            h, c = scan.step(t, gates[t], *((hidden[t - 1], memory[t - 1]) if t else (None, None)))
            order.pairs.add(summed, t, h.view(len(gates[t]), -1))
            hidden.append(h)
            memory.append(c)
        ctx.save_for_backward(*weights, *gates, *hidden, *memory)
        ctx.order, ctx.coupling, ctx.layouts = order, coupling, layouts
        return order.pairs.collect(summed)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        order, layouts, saved = ctx.order, ctx.layouts, ctx.saved_tensors
        steps = len(order.pairs.rows)
        weights, gates, hidden, memory = saved[: -3 * steps], *(saved[-k * steps :][:steps] for k in (3, 2, 1))
        scan, grad = Scan(order, ctx.coupling, weights), order.pairs.lay_out(grad)
        totals = [layout.zeros(scan.input_size, like=grad) for layout in layouts]
        grad_weights = [torch.zeros_like(weight) for weight in weights]
        grad_gates, grad_c = None, scan.zeros(steps - 1, like=grad)
        for t in reversed(range(steps)):
            grad_h = order.pairs.read(grad, t).view_as(grad_c)
            if grad_gates is not None:
                scan.multiply_back(t + 1, grad_gates, hidden[t], grad_h, grad_weights)
            grad_gates, grad_c = scan.step_back(t, grad_h, grad_c, gates[t], memory[t], memory[t - 1] if t else None)
            for number, (layout, total) in enumerate(zip(layouts, totals, strict=True)):
                layout.add(total, t, scan.by_lane(grad_gates)[number % scan.lanes])
        grad_inputs = [layout.collect(total) for layout, total in zip(layouts, totals, strict=True)]
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
        self.lanes, self.input_size = len(weights), len(weights[0])
        self.gates_per_lane = 1 + max(neighbor.gate for neighbor in COUPLINGS[coupling])
        self.hidden_size = self.input_size // self.gates_per_lane

    def by_lane(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut gates or states to the columns of each lane."""
        return tensor.chunk(self.lanes, dim=1)

    def combine(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        """Make the gates of one anti-diagonal, in memory of their own, of what enters it from below."""
        if self.lanes > 1:
            return torch.cat(inputs, dim=1)
        return torch.add(*inputs) if len(inputs) > 1 else inputs[0]

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
        for readers, read, _, (_, _, lane, gate) in self.diagonals[t].links:
            c[readers, :, lane].addcmul_(by_gate[gate][readers, :, lane], c_before[read, :, lane])
        squashed = (c * -2).sigmoid_()
        return torch.addcmul(output, output, squashed, value=-2), c

    def step_back(self, t: int, grad_h, grad_c, gates, c, c_before) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradient of the inputs of anti-diagonal `t`, and that of c of the one before.

        Given are those of its own h, and of its c as far as it is used by the one after, which is overwritten.
        """
        by_gate = self._by_gate(gates)
        grad_gates = torch.empty_like(gates) if t else torch.zeros_like(gates)
        grad_by_gate = self._by_gate(grad_gates)
        candidate, output, entry = by_gate[:3]
        squashed = (c * -2).sigmoid_()
        torch.addcmul(grad_h, grad_h, squashed, value=-2, out=grad_by_gate[1])
        grad_c.add_(torch.ops.aten.sigmoid_backward(grad_h.mul_(output), squashed), alpha=4)
        torch.addcmul(grad_c, grad_c, candidate, value=-2, out=grad_by_gate[2])
        torch.mul(grad_c, entry, out=grad_by_gate[0]).mul_(4)
        grad_c_before = self.zeros(t - 1, like=gates) if t else None
        for readers, read, others, (_, _, lane, gate) in self.diagonals[t].links:
            grad, grad_forget = grad_c[readers, :, lane], grad_by_gate[gate][:, :, lane]
            for other in others:
                grad_forget[other] = 0
            torch.mul(grad, c_before[read, :, lane], out=grad_forget[readers])
            grad_c_before[read, :, lane].addcmul_(grad, by_gate[gate][readers, :, lane])
        return torch.ops.aten.sigmoid_backward(grad_gates, gates, grad_input=grad_gates), grad_c_before

    def multiply_back(self, t: int, grad_gates, h_before, grad_h, grad_weights) -> None:
        """Add what the gates of anti-diagonal `t` say of h of the one before and of the weights to their gradients."""
        states = self._states(t, h_before)
        grad_states = torch.empty_like(states)
        lanes = (self.by_lane(part) for part in (grad_gates, states, grad_states))
        for gate, state, grad_state, weight, total in zip(*lanes, self.weights, grad_weights, strict=True):
            torch.mm(gate, weight, out=grad_state)
            total.addmm_(gate.t(), state)
        parts = grad_states.view(-1, self.rows, 2, self.lanes, self.hidden_size).unbind(2)
        for part, (readers, read, _, _) in zip(parts, self.diagonals[t].links, strict=True):
            grad_h[read] += part[readers]

    def zeros(self, t: int, like: torch.Tensor) -> torch.Tensor:
        """Make zeros of the shape that h and c of anti-diagonal `t` have."""
        return like.new_zeros(self.diagonals[t].size, self.rows, self.lanes, self.hidden_size)

    def _by_gate(self, gates: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return gates.view(-1, self.rows, self.lanes, self.gates_per_lane, self.hidden_size).unbind(3)

    def _states(self, t: int, h_before: torch.Tensor) -> torch.Tensor:
        """Lay both neighbors' h beside each other, `(cells * rows, 2 * lanes * hidden_size)`, zeros where none is."""
        states = h_before.new_empty(self.diagonals[t].size, self.rows, 2, self.lanes, self.hidden_size)
        for part, (readers, read, others, _) in zip(states.unbind(2), self.diagonals[t].links, strict=True):
            part[readers] = h_before[read]
            for other in others:
                part[other] = 0
        return states.view(len(states) * self.rows, -1)
