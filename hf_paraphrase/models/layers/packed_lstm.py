from __future__ import annotations

from typing import Literal

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from .dropout import Dropout

__all__ = ["run_packed_lstm"]

# Gradients of both functions from what these returned.
sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


def run_packed_lstm(
    lstm: nn.LSTM,
    inputs: PackedSequence,
    state: tuple[torch.Tensor, torch.Tensor] | None = None,
    cell_output: Literal["tanh", "identity"] = "tanh",
) -> tuple[PackedSequence, tuple[torch.Tensor, torch.Tensor]]:
    """Run an LSTM of one direction over packed sequences, step after step, all rows of a step at once.

    On a CPU, PyTorch's own loop over packed sequences fills a gradient of all words with zeros at every step
    of the backward pass, and adds up a gradient of the weights there, too. Here both are made once.

    Args:
        lstm: Holds the weights.
        inputs: As `nn.LSTM` takes them.
        state: (h, c) to start from, each `(num_layers, batch, hidden_size)`; zeros by default.
        cell_output: `"tanh"` for h = o·tanh(c), `"identity"` for h = o·c.

    Returns:
        What `nn.LSTM` returns.
    """
    x, sizes = inputs.data, inputs.batch_sizes
    if state is None:
        state = (x.new_zeros(lstm.num_layers, int(sizes[0]), lstm.hidden_size),) * 2
    else:
        state = lstm.permute_hidden(state, inputs.sorted_indices)
    last = _last_words(sizes).to(x.device)
    dropout, finals = Dropout(lstm.dropout).train(lstm.training), []
    for layer, (weights, h, c) in enumerate(zip(lstm.all_weights, *state, strict=True)):
        if layer:
            x = dropout(x)
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        from_inputs = nn.functional.linear(x, weight_ih, bias_ih + bias_hh)
        x, cells = _Layer.apply(from_inputs, weight_hh, h, c, sizes.tolist(), cell_output == "tanh")
        finals.append((x[last], cells[last]))
    h, c = (torch.stack(parts) for parts in zip(*finals, strict=True))
    return inputs._replace(data=x), lstm.permute_hidden((h, c), inputs.unsorted_indices)


def _last_words(sizes: torch.Tensor) -> torch.Tensor:
    """Position of the last word of each sequence, longest sequence first."""
    rows = torch.arange(int(sizes[0]))
    lengths = (sizes.unsqueeze(1) > rows).sum(0)
    return (sizes.cumsum(0) - sizes)[lengths - 1] + rows


class _Layer(torch.autograd.Function):
    """One layer, from its inputs' contribution to the gates `(words, 4 * hidden_size)` to h and c of every word."""

    @staticmethod
    def forward(ctx, from_inputs, weight, h, c, sizes: list[int], has_tanh: bool):
        # Products in the type of the inputs, which autocast may have lowered; everything else in that of the state.
        weight = weight.to(from_inputs.dtype)
        gates, steps = [], []
        start = (h, c)
        for size, added in zip(sizes, from_inputs.split(sizes), strict=True):
            gates.append(torch.addmm(added, h[:size].to(added.dtype), weight.t()).to(h.dtype))
            i, f, g, o = gates[-1].chunk(4, dim=1)
            for gate in (i, f, o):
                gate.sigmoid_()
            c = torch.addcmul(f * c[:size], i, g.tanh_())
            h = o * (torch.tanh(c) if has_tanh else c)
            steps.append((h, c))
        outputs, cells = (torch.cat(parts) for parts in zip(*steps, strict=True))
        ctx.save_for_backward(weight, *start, outputs, cells, *gates)
        ctx.sizes, ctx.has_tanh = sizes, has_tanh
        return outputs, cells

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_outputs, grad_cells):
        weight, h, c, outputs, cells, *gates = ctx.saved_tensors
        sizes, grad_gates = ctx.sizes, []
        steps = (grad_outputs, grad_cells, cells, _before(c, cells, sizes))
        grad_h = grad_c = h[:0]
        for gate, added_h, added_c, cell, before in zip(
            *(reversed(step) for step in (gates, *(words.split(sizes) for words in steps))), strict=True
        ):
            i, f, g, o = gate.chunk(4, dim=1)
            squashed = torch.tanh(cell) if ctx.has_tanh else cell
            grad_h = _add_rows(added_h, grad_h)
            to_cell = grad_h * o
            grad_c = _add_rows(added_c, grad_c).add_(tanh_backward(to_cell, squashed) if ctx.has_tanh else to_cell)
            grads = (
                sigmoid_backward(grad_c * g, i),
                sigmoid_backward(grad_c * before, f),
                tanh_backward(grad_c * i, g),
                sigmoid_backward(grad_h * squashed, o),
            )
            grad_gates.append(torch.cat(grads, dim=1).to(weight.dtype))
            grad_h = (grad_gates[-1] @ weight).to(h.dtype)
            grad_c = grad_c * f
        grad_inputs = torch.cat(grad_gates[::-1])
        grad_weight = grad_inputs.t() @ _before(h, outputs, sizes).to(weight.dtype)
        return grad_inputs, grad_weight, grad_h, grad_c, None, None


def _before(start: torch.Tensor, words: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """For each word, the value one step earlier."""
    steps = words.split(sizes)
    return torch.cat((start, *(step[:size] for step, size in zip(steps, sizes[1:], strict=False))))


def _add_rows(x: torch.Tensor, first_rows: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[: len(first_rows)] += first_rows
    return x
