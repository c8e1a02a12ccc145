"""Coupled LSTMs over a whole grid of word pairs, one anti-diagonal at a time (Liu et al. 2016, section 3).

A cell (i, j) reads only (i - 1, j) and (i, j - 1), both on the previous anti-diagonal. So all cells
of one, in all directions and all rows of the batch, are one matrix product and a few element-wise operations on
contiguous memory.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..layers.products import add_product, multiply, sigmoid_backward, sigmoid_backward_out
from ..layers.scan import scan
from .grid import COUPLINGS, AntiDiagonal, GridOrder, GridPart, PairLayout, reading_order


# Compiling would unroll the loop for every pair of lengths.
@torch.compiler.disable
def coupled_lstm(
    inputs: list[Tensor], weights: list[Tensor], order: GridOrder, coupling: str, features: Tensor | None = None
) -> Tensor:
    """Scan a batch of grids in the directions of `order`, and sum the hidden states of all directions.

    Values at padding mean nothing, and no value at a word depends on padding.

    Args:
        inputs: What enters from below, projected to the gates, biases added. In the first block two grids of words,
            X's `(batch, n, 1, width)` and Y's `(batch, 1, m, width)`. Above it grids of pairs, `(batch, n, m, width)`,
            one if coupled tightly. If coupled loosely, the first grid is for LSTM1 and the second for LSTM2.
        weights: Recurrent weights of each LSTM, `(gates * hidden_size, states)`. The states are h(i, j - 1) and
            h(i - 1, j) side by side if coupled tightly; if loosely h(i - 1, j) for LSTM1 and h(i, j - 1) for LSTM2,
            each being h of both LSTMs, side by side; behind them stand the features. Rows are the gates c̃, o, i and
            one or two f.
        order: Directions and lengths.
        coupling: `"tight"` or `"loose"`.
        features: Further inputs of the gates for each pair of words, `(batch, n, m, features)`.

    Returns:
        h, `(batch, n, m, hidden_size)`, twice as wide if coupled loosely.
    """
    weights = [weight.to(inputs[0].dtype) for weight in weights]
    is_pairs = [grid.shape[:3] == order.shape for grid in inputs]
    grids = [grid.flatten(0, 2) for grid in inputs]
    if features is not None:
        features = features.flatten(0, 2).to(inputs[0].dtype)
    return CoupledLstmFunction.apply(order, coupling, is_pairs, features, *weights, *grids).unflatten(0, order.shape)


class CoupledLstmFunction(torch.autograd.Function):
    """The scan and, by hand, its gradient: automatic differentiation would copy and keep several times as much.

    h and c of all anti-diagonals are contiguous, because neighbors are read from there. Gates and states, which are
    several times as large, are tensors of each one's own, whose memory the allocator can use again.
    """

    @staticmethod
    def forward(ctx, order: GridOrder, coupling: str, is_pairs: list[bool], features: Tensor | None, *tensors):
        weights, grids = tensors[: -len(is_pairs)], tensors[-len(is_pairs) :]
        lanes = [Lane(weight, neighbors) for weight, neighbors in zip(weights, COUPLINGS[coupling], strict=True)]
        saved: list[Tensor | None] = []
        hidden = []
        for part in order.parts:
            layouts = part.layouts(is_pairs)
            inputs = [(layout, layout.lay_out(grid)) for layout, grid in zip(layouts, grids, strict=True)]
            for layout, laid_out in inputs:
                if layout.copies:
                    lanes[0].to_sigmoid(laid_out)
            extra = [] if features is None else [features.index_select(0, part.places)]
            hidden.append(scan_diagonals(part, lanes, by_lane(inputs, lanes), extra, saved))
        ctx.save_for_backward(*weights, *saved)
        ctx.order, ctx.coupling, ctx.is_pairs, ctx.shapes = order, coupling, is_pairs, [grid.shape for grid in grids]
        ctx.num_features = 0 if features is None else features.shape[1]
        return torch.cat(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        coupling, saved = COUPLINGS[ctx.coupling], ctx.saved_tensors
        weights, saved = saved[: len(coupling)], saved[len(coupling) :]
        grad_weights = [torch.zeros_like(weight) for weight in weights]
        grad_grids = [grad.new_zeros(shape) for shape in ctx.shapes]
        grad_features: list[Tensor] = []
        # Nothing of it is differentiated again, and without the records for that each operation starts sooner.
        with torch.inference_mode():
            lanes = [Lane(weight, neighbors) for weight, neighbors in zip(weights, coupling, strict=True)]
            # That of a sum is one number expanded, from which taking rows is several times as slow.
            grad, size = grad.contiguous(), len(saved) // len(ctx.order.parts)
            for number, part in enumerate(ctx.order.parts):
                layouts = part.layouts(ctx.is_pairs)
                totals = [(layout, layout.begin(grid)) for layout, grid in zip(layouts, grad_grids, strict=True)]
                extra = [grad.new_zeros(len(part.places), ctx.num_features)] if ctx.num_features else []
                steps = saved[number * size :][:size]
                scan_backward(part, lanes, by_lane(totals, lanes), extra, steps, grad, grad_weights)
                grad_features += map(part.sum_directions, extra)
                for (layout, total), grid in zip(totals, grad_grids, strict=True):
                    if layout.copies:
                        lanes[0].complete(total)
                    layout.end(grid, total)
            for is_pair, grid in zip(ctx.is_pairs, grad_grids, strict=True):
                if is_pair:
                    lanes[0].complete(grid)
            for grad_weight in grad_weights:
                lanes[0].complete(grad_weight.t())
        of_features = torch.cat(grad_features) if grad_features else None
        return None, None, None, of_features, *grad_weights, *grad_grids


def by_lane(inputs: list, lanes: list[Lane]) -> list[list]:
    """Hand inputs out: all to the one lane, or one to each."""
    return [inputs] if len(lanes) == 1 else [[part] for part in inputs]


def scan_diagonals(
    part: GridPart, lanes: list[Lane], inputs, features: list[Tensor], saved: list[Tensor | None]
) -> Tensor:
    """Run through the anti-diagonals of some rows of the batch.

    Args:
        part: The rows and their positions.
        lanes: The LSTMs.
        inputs: For each lane, the layouts of its inputs, and the inputs as laid out.
        features: Those of the pairs in the rows of all anti-diagonals, if there are any.
        saved: What the backward pass needs is appended: c of each lane, then for each anti-diagonal and each lane its
            gates, states and σ(-2c).

    Returns:
        h of all their pairs, summed over the directions.
    """
    width, end = lanes[0].hidden_size, part.diagonals[-1].rows.stop
    all_h = lanes[0].backward_weight.new_empty(end, len(lanes) * width)
    all_c = [all_h.new_empty(end, width) for _ in lanes]
    saved += all_c
    outputs = all_h.chunk(len(lanes), 1)
    for t, diagonal in enumerate(part.diagonals):
        for memory in (all_h, *all_c):
            memory[diagonal.border].zero_()
        for lane, sources, memory, output in zip(lanes, inputs, all_c, outputs, strict=True):
            gates = lane.read_inputs(sources, t)
            states = beside(lane.neighbors_in(all_h, diagonal) + [rows[diagonal.rows] for rows in features])
            if states is not None:  # Where nothing comes before, only features.
                gates = add_product(gates, states, lane.forward_weight[:, -states.shape[1] :])
            h, c, c_before = output[diagonal.rows], memory[diagonal.rows], lane.neighbors_in(memory, diagonal)
            squashed = lane.step(gates, c_before, c, h)
            saved += gates, states, squashed
    return part.sum_directions(all_h)


def scan_backward(part: GridPart, lanes: list[Lane], totals, grad_features, saved, grad: Tensor, grad_weights) -> None:
    """Run backward through them.

    Args:
        part: The rows, and where they stand.
        lanes: The LSTMs.
        totals: For each lane, the layouts of its inputs, and the sums of their gradients, which are added to.
        grad_features: The gradient of the features as `scan_diagonals` gets them, which is added to.
        saved: What `scan_diagonals` appended.
        grad: Gradient of h of all pairs.
        grad_weights: For each lane, the gradient of its weights, which is added to.
    """
    all_c, saved = saved[: len(lanes)], saved[len(lanes) :]
    all_grad_h = grad.index_select(0, part.places)
    all_grad_c: list[Tensor | None] = [None] * len(lanes)
    grad_outputs = all_grad_h.chunk(len(lanes), 1)
    for t, diagonal in reversed(list(enumerate(part.diagonals))):
        for number, (lane, grad_output) in enumerate(zip(lanes, grad_outputs, strict=True)):
            gates, states, squashed = saved[3 * (t * len(lanes) + number) :][:3]
            c_before = lane.neighbors_in(all_c[number], diagonal)
            grad_h, grad_c = grad_output[diagonal.rows], all_grad_c[number]
            grad_gates, grad_c = lane.step_backward(grad_h, grad_c, gates, squashed, c_before)
            for layout, total in totals[number]:
                layout.add(total, t, grad_gates)
            if t:
                all_grad_c[number] = lane.forget_backward(grad_c, gates, diagonal, part.diagonals[t - 1])
            if states is not None:
                sources = lane.neighbors_in(all_grad_h, diagonal) + [rows[diagonal.rows] for rows in grad_features]
                lane.multiply_backward(grad_gates, states, sources, grad_weights[number])


def beside(parts: list[Tensor]) -> Tensor | None:
    """Concatenate neighbors and features, if any; a single one is not copied."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return torch.cat(parts, dim=1)


class Lane:
    """One LSTM: a step, and its gradient, over all cells of an anti-diagonal in all directions and rows.

    tanh(z) is computed as 1 - 2σ(-2z), for torch's σ takes a fraction of the time of its tanh on a CPU. So σ(-2z)
    takes the place of c̃ among the gates. The backward pass leaves out its factor 4, which `complete` restores.

    Args:
        weight: Recurrent weights, `(gates * hidden_size, states)`, the gates being c̃, o, i and one f a neighbor, and
            the states h of the neighbors and the features.
        neighbors: The cells whose h and c it reads, as in `COUPLINGS`.
    """

    def __init__(self, weight: Tensor, neighbors: tuple[tuple[int, int], ...]):
        self.neighbors = neighbors
        self.n_gates = 3 + len(neighbors)
        self.hidden_size = len(weight) // self.n_gates
        self.forward_weight, self.backward_weight = weight.clone(), weight.t().contiguous()
        self.to_sigmoid(self.forward_weight.t())
        self.complete(self.backward_weight)

    def to_sigmoid(self, inputs: Tensor) -> Tensor:
        """Turn inputs of gates, `(…, gates * hidden_size)`, into those of σ, in place."""
        inputs.narrow(1, 0, self.hidden_size).mul_(-2)
        return inputs

    def complete(self, grad_gates: Tensor) -> Tensor:
        """Turn what `step_backward` leaves of the gradient of the inputs into all of it, in place."""
        grad_gates.narrow(1, 0, self.hidden_size).mul_(4)
        return grad_gates

    def read_inputs(self, sources: list[tuple[PairLayout, Tensor]], t: int) -> Tensor:
        """Sum the inputs of σ of an anti-diagonal, in separate memory."""
        if len(sources) == 1:
            ((layout, laid_out),) = sources
            gates = layout.read(laid_out, t)
            return gates.clone() if layout.copies else self.to_sigmoid(gates)
        # Beside a sentence of a single word, the other's words are pairs.
        reads = ((layout, layout.read(laid_out, t)) for layout, laid_out in sources)
        return torch.add(*(part if layout.copies else self.to_sigmoid(part) for layout, part in reads))

    def neighbors_in(self, cells: Tensor, diagonal: AntiDiagonal) -> list[Tensor]:
        """See the neighbors of an anti-diagonal's cells among all cells: a `(rows, width)` each, or none at all."""
        return [cells[diagonal.neighbors[step_x]] for step_x, _ in self.neighbors if diagonal.neighbors]

    def step(self, gates, c_before, c, h) -> Tensor:
        """Turn the inputs of σ, `gates`, into the gates, in place, fill `c` and `h`, and return σ(-2c)."""
        candidate, output, entry, *forgets = gates.chunk(self.n_gates, dim=1)
        gates.sigmoid_()
        torch.addcmul(entry, entry, candidate, value=-2, out=c)
        for forget, before in zip(forgets, c_before, strict=False):
            c.addcmul_(forget, before)
        squashed = (c * -2).sigmoid_()
        torch.addcmul(output, output, squashed, value=-2, out=h)
        return squashed

    def step_backward(self, grad_h, grad_c, gates, squashed, c_before) -> tuple[Tensor, Tensor]:
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
        if not c_before:
            grad_gates[:, 3 * self.hidden_size :] = 0
        for grad_forget, before in zip(grad_forgets, c_before, strict=False):
            torch.mul(grad_c, before, out=grad_forget)
        return sigmoid_backward_out(grad_gates, gates, grad_input=grad_gates), grad_c

    def forget_backward(self, grad_c: Tensor, gates: Tensor, diagonal: AntiDiagonal, before: AntiDiagonal) -> Tensor:
        """Return the gradient of c of the anti-diagonal `before`, given that of c and the gates of `diagonal`."""
        origin, border = before.border.start, before.border.stop - before.border.start
        # With a cell before and one after, for neighbors that are none.
        total = grad_c.new_empty(before.rows.stop - origin + border, self.hidden_size)
        forgets = gates.chunk(self.n_gates, dim=1)[3:]
        for number, (step_x, _) in enumerate(self.neighbors):
            start = diagonal.neighbors[step_x].start - origin
            stop = start + len(grad_c)
            if number:
                total[start:stop].addcmul_(grad_c, forgets[number])
            else:  # Written, which takes less than adding to zeros.
                total[:start] = 0
                total[stop:] = 0
                torch.mul(grad_c, forgets[number], out=total[start:stop])
        return total[border:-border]

    def multiply_backward(self, grad_gates, states, grad_sources: list[Tensor], grad_weight: Tensor) -> None:
        """Add what gates say of the parts of `states`, as `beside` got them, and of the weights."""
        columns = slice(-states.shape[1], None)
        grad_weight[:, columns].t().add_(multiply(states.t(), grad_gates.t()))
        grad_states = multiply(grad_gates, self.backward_weight[columns])
        # One neighbor after the other: a cell may be a neighbor of two.
        widths = [source.shape[1] for source in grad_sources]
        for grad, source in zip(grad_states.split(widths, 1), grad_sources, strict=True):
            source.add_(grad)


class ScanOrder(NamedTuple):
    """The inputs of a `GridOrder`: numbers of words of X and Y in each row, `(batch,)`, and directions."""

    x_lengths: Tensor
    y_lengths: Tensor
    directions: tuple[tuple[bool, bool], ...]


def scan_coupled_lstm(
    inputs: list[Tensor], weights: list[Tensor], order: ScanOrder, coupling: str, features: Tensor | None = None
) -> Tensor:
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
        x, y = (reading_order(*side) for side in lengths)
        grids = [_read(grid.expand(-1, n, m, -1), x, y) for grid in inputs]
        hidden.append(_read(_scan_direction(grids, weights, COUPLINGS[coupling]), x, y))
    return reduce(torch.add, hidden)


def _read(grid: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Put a grid `(batch, n, m, width)` in the order of reading, or back."""
    return _take(_take(grid, x[:, :, None, None], dim=1), y[:, None, :, None], dim=2)


def _take(x: Tensor, places: Tensor, dim: int) -> Tensor:
    """As `take_along_dim`, which wants to know sizes as numbers."""
    shape = [places.shape[other] if other == dim else x.shape[other] for other in range(x.dim())]
    return x.gather(dim, places.expand(shape))


def _scan_direction(
    grids: list[Tensor], weights: list[Tensor], neighbors: tuple[tuple[tuple[int, int], ...], ...]
) -> Tensor:
    """Run from the first words to the last; the neighbors of each LSTM as `COUPLINGS` has them."""
    batch, n, m, _ = grids[0].shape
    count, size = len(weights), weights[0].shape[0] // (3 + len(neighbors[0]))
    i, t = torch.arange(n, device=grids[0].device).unsqueeze(1), torch.arange(n + m - 1, device=grids[0].device)
    j = (t - i)[None, :, :, None]
    grids = [reduce(torch.add, grids)] if count == 1 else grids
    skewed = [_take(grid, j.clamp(0, m - 1), dim=2).permute(2, 0, 1, 3) for grid in grids]
    is_cell = ((j >= 0) & (j < m)).permute(2, 0, 1, 3)

    def before(state: Tensor, steps: tuple[int, int]) -> Tensor:
        return nn.functional.pad(state[:, :-1], (0, 0, 1, 0)) if steps[0] else state

    def step(*tensors: Tensor) -> tuple[Tensor, ...]:
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
