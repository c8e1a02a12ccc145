"""The ways to run LSTM layers, and the choice among them. All of them compute what `nn.LSTM` does.

Words are packed, `(words, width)`: all sequences' first words, then their second words, and so on, the longest
sequence first. `sizes` says how many words each step has.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from transformers.utils import logging

from .layer_weights import parameter_of
from .precision import runs_lstm
from .products import (
    PrepackedWeights,
    can_prepack,
    has_wide_vectors,
    linear,
    multiplier,
    multiply,
    sigmoid_backward,
    sigmoid_backward_out,
)
from .scan import scan

LstmState = tuple[Tensor, Tensor]
"""The pair (h, c), each `(num_layers * num_directions, batch, hidden_size)` as `torch.nn.LSTM` has them."""


@dataclass(frozen=True)
class PackedOrder:
    """The order of words in a packed sequence, the longest sentence first.

    Args:
        words: Indices of the words in packed order.
        sizes: For each step how many sentences are that long.
        sentences: Indices of the sentences that have words, the longest first.
        last: For each of these, the packed position of its last word.
    """

    words: Tensor
    sizes: list[int]
    sentences: Tensor
    last: Tensor


@torch.compiler.disable
def packed_order(sentence: Tensor, number: Tensor, length: Tensor) -> PackedOrder:
    """Order words for one packed call.

    Given are for each word its sentence and its number there, from 0, `(words,)`, and each sentence's length,
    `(sentences,)`.
    """
    sentences = length.argsort(descending=True, stable=True)
    rank = sentences.argsort()
    counts = torch.bincount(number)
    starts, sizes = counts.cumsum(0) - counts, counts.tolist()
    place = starts[number] + rank[sentence]
    sentences = sentences[: sizes[0] if sizes else 0]
    last = starts[length[sentences] - 1] + torch.arange(len(sentences), device=length.device)
    return PackedOrder(place.argsort(), sizes, sentences, last)


def order_of_real(mask: Tensor) -> PackedOrder:
    """Order the real positions of a padded batch, true in a mask `(batch, length)`, as indices of the flat batch."""
    places = mask.flatten().nonzero().squeeze(1)
    order = packed_order(places // mask.shape[1], (mask.cumsum(1) - 1).flatten()[places], mask.sum(1))
    return PackedOrder(places[order.words], order.sizes, order.sentences, order.last)


def select_states(state: LstmState, rows: Tensor) -> LstmState:
    """Return the states of some rows."""
    h, c = state
    return h.index_select(1, rows), c.index_select(1, rows)


def replace_states(state: LstmState, rows: Tensor, new: LstmState) -> LstmState:
    """Return the states with those of some rows replaced."""
    h, c = (part.index_copy(1, rows, of_rows.to(part.dtype)) for part, of_rows in zip(state, new, strict=True))
    return h, c


logger = logging.get_logger(__name__)

# Runs some layers of an LSTM over packed words; the state is theirs alone.
Kernel = Callable[[Any, range, Tensor, list[int], LstmState], tuple[Tensor, LstmState]]


class IdentityOutputLstm(nn.LSTM):
    """Weights of LSTM layers of one direction with h = o·c (Li et al. 2015, equations 1 to 3), for `run_lstm`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse what would compute h = o·tanh(c)."""
        raise NotImplementedError("only `run_lstm` and `scan_lstm` run layers with h = o·c")


def run_lstm(
    lstm: nn.LSTM,
    x: Tensor,
    state: LstmState,
    sizes: list[int],
    dropout: nn.Module,
    every_layer: bool = False,
    prepacked: PrepackedWeights | None = None,
) -> tuple[list[Tensor], LstmState]:
    """Run an LSTM in the way that is fastest here, with dropout after every layer.

    Args:
        lstm: Also one whose weights are integers, or are offloaded by accelerate.
        x: `(words, input_size)`.
        state: (h, c) to start from, each `(num_layers * num_directions, sizes[0], hidden_size)`.
        sizes: Words of each step.
        dropout: With the probability of `lstm.dropout`.
        every_layer: Return every layer's outputs, which is slower.
        prepacked: Keeps the weights between calls with a single step each, which are faster by it.

    Returns:
        Outputs `(words, num_directions * hidden_size)` of every layer, or of some of them and the last; and the
        final (h, c) of every sequence.
    """
    if _lacks_kernel(x):
        dtype = cast(Tensor, lstm.weight_ih_l0).dtype
        with torch.autocast("cpu", enabled=False):
            h, c = (part.to(dtype) for part in state)
            return run_lstm(lstm, x.to(dtype), (h, c), sizes, dropout, every_layer)
    kernel, count = choose_kernel(lstm, x, sizes, prepacked), lstm.num_layers
    at_once = count if kernel in (run_fused, run_quantized) and not every_layer else 1
    directions, outputs, finals = 2 if lstm.bidirectional else 1, [], []
    starts = zip(*(part.split(at_once * directions) for part in state), strict=True)
    for first, start in zip(range(0, count, at_once), starts, strict=True):
        x, final = kernel(lstm, range(first, first + at_once), x, sizes, start)
        x = dropout(x)
        outputs.append(x)
        finals.append(final)
    h, c = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*finals, strict=True))
    return outputs, (h, c)


def choose_kernel(lstm: nn.LSTM, x: Tensor, sizes: list[int], prepacked: PrepackedWeights | None) -> Kernel:
    if not isinstance(lstm, nn.LSTM):
        return run_quantized
    if isinstance(lstm, IdentityOutputLstm):
        return run_loop
    if lstm.bidirectional or x.device.type != "cpu":
        return run_fused
    # All products of the loop, also in the backward pass, are oneDNN's where its vectors are wider than MKL's.
    is_wide = has_wide_vectors(x.device.type, x.dtype)
    if len(sizes) > 1:
        return run_loop if sizes[0] != sizes[-1] and (is_wide or torch.is_grad_enabled()) else run_fused
    if is_wide and torch.is_grad_enabled():
        return run_loop
    if prepacked is not None and not lstm.training and can_prepack(x, cast(Tensor, lstm.weight_ih_l0)):
        return prepacked.run_cell
    return run_cell


def run_fused(lstm: nn.LSTM, layers: range, x: Tensor, sizes: list[int], state: LstmState):
    """Run layers in one call of cuDNN or oneDNN."""
    weights = [weight for layer in layers for direction in _weights_of(lstm, layer) for weight in direction]
    options = True, len(layers), lstm.dropout, lstm.training, lstm.bidirectional
    if sizes[0] != sizes[-1]:
        outputs, h, c = torch.lstm(x, torch.tensor(sizes), state, weights, *options)
        return outputs, (h, c)
    outputs, h, c = torch.lstm(x.unflatten(0, (len(sizes), -1)), state, weights, *options, False)
    return outputs.flatten(0, 1), (h, c)


def run_quantized(lstm: Any, layers: range, x: Tensor, sizes: list[int], state: LstmState):
    """Run layers whose weights are integers: those of `quantize_weights` or of PyTorch's `quantize_dynamic`."""
    if len(layers) < lstm.num_layers:
        directions, whole = 2 if lstm.bidirectional else 1, lstm
        packed = whole._all_weight_values[layers.start * directions : layers.stop * directions]
        lstm = copy.copy(whole)
        # Modules are kept in a dict, which the copy shares.
        vars(lstm).update(num_layers=1, input_size=x.shape[-1], _modules={"_all_weight_values": packed})
    outputs, final = lstm(PackedSequence(x, torch.tensor(sizes)), state)
    return outputs.data, final


def run_cell(lstm: nn.LSTM, layers: range, x: Tensor, sizes: list[int], state: LstmState):
    """Run a single step: on a CPU, a fused call repacks all weights, which takes longer than the step."""
    ((weights,),) = (_weights_of(lstm, layer) for layer in layers)
    h, c = torch.lstm_cell(x, [part[0] for part in state], *weights)
    return h, (h.unsqueeze(0), c.unsqueeze(0))


def run_loop(lstm: nn.LSTM, layers: range, x: Tensor, sizes: list[int], state: LstmState):
    """Run a layer step after step.

    On a CPU, PyTorch's own loop over packed sequences fills a gradient of all words with zeros at every step
    of the backward pass, and adds up a gradient of the weights there, too. Here both are made once.
    """
    (((weight_ih, weight_hh, bias_ih, bias_hh),),) = (_weights_of(lstm, layer) for layer in layers)
    from_inputs = linear(x, weight_ih, bias_ih + bias_hh)
    has_tanh = not isinstance(lstm, IdentityOutputLstm)
    outputs, cells = _LoopedLayer.apply(from_inputs, weight_hh, state[0][0], state[1][0], sizes, has_tanh)
    last = _last_words(sizes).to(x.device)
    return outputs, (outputs[last].unsqueeze(0), cells[last].unsqueeze(0))


def scan_lstm(
    lstm: nn.LSTM, x: Tensor, state: LstmState, real: Tensor, dropout: nn.Module
) -> tuple[list[Tensor], LstmState]:
    """Run an LSTM in operations that `torch.export` can trace for any length, slower than `run_lstm`.

    Args:
        lstm: As in `run_lstm`, like `dropout`.
        x: `(length, batch, input_size)`, not packed.
        state: (h, c) to start from.
        real: `(length, batch, 1)`, false at padding, which may be anywhere.
        dropout: Follows every layer.

    Returns:
        Outputs of every layer, `(length, batch, num_directions * hidden_size)`, zero at padding; the final (h, c).
    """
    starts, outputs, finals = zip(*state, strict=True), [], []
    has_tanh = not isinstance(lstm, IdentityOutputLstm)
    for layer in range(lstm.num_layers):
        directions = []
        for is_backward, weights in enumerate(_weights_of(lstm, layer)):
            output, final = _scan_layer(x, real, weights, next(starts), has_tanh, bool(is_backward))
            directions.append(output)
            finals.append(final)
        x = dropout(torch.cat(directions, dim=-1))
        outputs.append(x)
    h, c = (torch.stack(parts) for parts in zip(*finals, strict=True))
    return outputs, (h, c)


def _scan_layer(x, real, weights: list[Tensor], state: LstmState, has_tanh: bool, reverse: bool):
    weight_ih, weight_hh, bias_ih, bias_hh = weights

    def step(h, c, from_inputs, real, weight_hh):
        i, f, g, o = (from_inputs + nn.functional.linear(h, weight_hh)).chunk(4, dim=-1)
        new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        new_h = o.sigmoid() * (new_c.tanh() if has_tanh else new_c)
        return torch.where(real, new_h, h), torch.where(real, new_c, c), torch.where(real, new_h, 0.0)

    from_inputs = nn.functional.linear(x, weight_ih, bias_ih + bias_hh)
    if x.shape[0] == 1:
        h, c, output = step(*state, from_inputs[0], real[0], weight_hh)
        return output.unsqueeze(0), (h, c)
    if reverse:
        from_inputs, real = from_inputs.flip(0), real.flip(0)
    (h, c), (outputs,) = scan(step, [part.clone() for part in state], [from_inputs, real], [weight_hh])
    return outputs.flip(0) if reverse else outputs, (h, c)


def _weights_of(lstm: nn.LSTM, layer: int) -> list[list[Tensor]]:
    """The weights of each direction of a layer, as `nn.LSTM.all_weights` has them."""
    directions = 2 if lstm.bidirectional else 1
    names = lstm._all_weights[layer * directions : (layer + 1) * directions]
    return [[parameter_of(lstm, name) for name in of_direction] for of_direction in names]


def _lacks_kernel(x: Tensor) -> bool:
    """Whether autocast asks for an LSTM precision that this CPU lacks; warns once."""
    if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return False
    dtype = torch.get_autocast_dtype("cpu")
    if runs_lstm(dtype):
        return False
    logger.warning_once(f"this CPU cannot run LSTMs in {dtype}: they run in the precision of their weights")
    return True


def _last_words(sizes: list[int]) -> Tensor:
    """Position of the last word of each sequence, longest sequence first."""
    counts, rows = torch.tensor(sizes), torch.arange(sizes[0])
    lengths = (counts.unsqueeze(1) > rows).sum(0)
    return (counts.cumsum(0) - counts)[lengths - 1] + rows


class _LoopedLayer(torch.autograd.Function):
    """One layer, from its inputs' contribution to the gates `(words, 4 * hidden_size)` to h and c of every word.

    tanh(z) is computed as 1 - 2σ(-2z): all gates are one σ, which takes a fraction of the time of tanh on a CPU. So
    σ(-2z) takes the place of g among the gates; its gradient lacks a factor of 4 until the weights restore it.
    """

    @staticmethod
    def forward(ctx, from_inputs, weight, h, c, sizes: list[int], has_tanh: bool):
        # Products in the type of the inputs, which autocast may have lowered; everything else in that of the state.
        size, weight = h.shape[1], weight.to(from_inputs.dtype)
        from_inputs, start = _scale_g(from_inputs.clone(), -2, dim=1), (h, c)
        multiply = multiplier(_scale_g(weight.clone(), -2, dim=0), len(sizes))
        outputs, gates = h.new_empty(len(from_inputs), size), from_inputs.to(h.dtype)
        cells, squashed = torch.empty_like(outputs), torch.empty_like(outputs) if has_tanh else None
        for rows, added, gate in zip(steps_of(sizes), from_inputs.split(sizes), gates.split(sizes), strict=True):
            count = len(gate)
            gate.copy_(added + multiply(h[:count].to(added.dtype)))
            i, f, g, o = gate.sigmoid_().chunk(4, dim=1)
            before, c, h = c[:count], cells[rows], outputs[rows]
            torch.addcmul(i, i, g, value=-2, out=c).addcmul_(f, before)
            if squashed is None:
                torch.mul(o, c, out=h)
            else:
                squash = torch.mul(c, -2, out=squashed[rows]).sigmoid_()
                torch.addcmul(o, o, squash, value=-2, out=h)
        ctx.save_for_backward(weight, *start, outputs, cells, squashed, gates)
        ctx.sizes = sizes
        return outputs, cells

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_outputs, grad_cells):
        weight, h, c, outputs, cells, squashed, gates = ctx.saved_tensors
        sizes, weight = ctx.sizes, _scale_g(weight.clone(), 4, dim=0)
        grad_outputs, grad_cells, grad_gates = grad_outputs.clone(), grad_cells.clone(), torch.empty_like(gates)
        befores, multiply_back = _before(c, cells, sizes), multiplier(weight.t(), len(sizes))
        grad_h = grad_c = h[:0]
        for rows in reversed(steps_of(sizes)):
            i, f, g, o = gates[rows].chunk(4, dim=1)
            of_gates = grad_gates[rows]
            of_i, of_f, of_g, of_o = of_gates.chunk(4, dim=1)
            of_h, of_c = grad_outputs[rows], grad_cells[rows]
            of_h[: len(grad_h)] += grad_h
            of_c[: len(grad_c)] += grad_c
            if squashed is None:
                torch.mul(of_h, cells[rows], out=of_o)
                of_c.addcmul_(of_h, o)
            else:
                torch.addcmul(of_h, of_h, squashed[rows], value=-2, out=of_o)
                of_c.add_(sigmoid_backward(of_h.mul_(o), squashed[rows]), alpha=4)
            torch.addcmul(of_c, of_c, g, value=-2, out=of_i)
            torch.mul(of_c, befores[rows], out=of_f)
            torch.mul(of_c, i, out=of_g)
            sigmoid_backward_out(of_gates, gates[rows], grad_input=of_gates)
            grad_h = multiply_back(of_gates.to(weight.dtype)).to(h.dtype)
            grad_c = of_c.mul_(f)
        grad_inputs = _scale_g(grad_gates, 4, dim=1).to(weight.dtype)
        grad_weight = multiply(_before(h, outputs, sizes).to(weight.dtype).t(), grad_inputs.t()).t()
        return grad_inputs, grad_weight, grad_h, grad_c, None, None


def _scale_g(gates: Tensor, factor: float, dim: int) -> Tensor:
    """Multiply gate g, in place."""
    gates.chunk(4, dim)[2].mul_(factor)
    return gates


def steps_of(sizes: list[int]) -> list[slice]:
    """The words of each step, which has as many as `sizes` says."""
    stops = list(accumulate(sizes))
    return [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]


def _before(start: Tensor, words: Tensor, sizes: list[int]) -> Tensor:
    """For each word, the value one step earlier."""
    steps = words.split(sizes)
    return torch.cat((start, *(step[:size] for step, size in zip(steps, sizes[1:], strict=False))))
