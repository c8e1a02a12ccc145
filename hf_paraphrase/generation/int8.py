"""Layers whose weights are 8-bit integers, and whose products run in them, on any CPU of the x86 family."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from ..common.errors import InputError

LEVELS, INPUT_ZERO = 127, 128  # inputs are unsigned bytes, of which this is zero
OUTPUTS_AT_ONCE = 4096  # of a vocabulary, so that what PyTorch stores between two passes stays in a core's cache
FEWEST_OUTPUTS = 16  # narrower layers take longer to quantise their inputs than to multiply
FEWEST_TABLE_WEIGHTS = 2**16  # smaller tables, as of relative positions, are read by others and save nothing


class Int8Layer(nn.Module):
    """What the layers share: they can neither be trained nor saved, as the weights of single precision are gone."""

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None:
        raise InputError('a model in int8 cannot be saved or converted: load it with `dtype="float32"` for that')


class Int8Linear(Int8Layer):
    """Does what a linear layer does, in int8.

    Weights have one scale per output channel, inputs one per row, so that no row depends on the others of its batch.
    CPUs before VNNI add the products of two neighbouring inputs in 16 bits. That they never overflow, two neighbouring
    weights come to 128 at most.

    Args:
        weight: Of the layer it replaces, `(out_features, in_features)`, in single precision on the CPU.
        bias: `(out_features,)`, or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        self._packed = [_pack(part) for part in weight.detach().split(OUTPUTS_AT_ONCE)]

    def forward(self, x: torch.Tensor, added: torch.Tensor | None = None) -> torch.Tensor:
        """Map `(*, in_features)` to `(*, out_features)`.

        `added`, of the result's shape, is added in place of the bias, and overwritten with the result.
        """
        if torch.is_grad_enabled() and x.requires_grad:
            raise InputError('a model in int8 has no gradients: load it with `dtype="float32"` for that')
        if x.numel() == 0:
            return x.new_zeros(*x.shape[:-1], self.out_features)
        largest = x.abs().amax(dim=-1, keepdim=True).clamp_min_(torch.finfo(x.dtype).tiny)
        x = x / largest
        if len(self._packed) == 1:
            product = _multiply(x, self._packed[0])
            out, added = (product, self.bias) if added is None else (added, added)
            return _scale(product, largest, added, out)
        out = x.new_empty(*x.shape[:-1], self.out_features) if added is None else added
        added = self.bias if added is None else added
        parts = [None] * len(self._packed) if added is None else added.split(OUTPUTS_AT_ONCE, dim=-1)
        for packed, part, written in zip(self._packed, parts, out.split(OUTPUTS_AT_ONCE, dim=-1), strict=True):
            _scale(_multiply(x, packed), largest, part, written)
        return out

    def weight(self) -> torch.Tensor:
        """Return the rounded weights; a function, as in the layers of PyTorch's `quantize_dynamic`."""
        return torch.cat([torch.ops.quantized.linear_unpack(packed)[0].dequantize() for packed in self._packed])


def _pack(weight: torch.Tensor) -> torch.ScriptObject:
    with warnings.catch_warnings():
        # Of PyTorch's quantised tensors, which a later release may remove; its packed products take no others.
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
        zeros = torch.zeros(len(weight), dtype=torch.long)
        largest = weight.abs().amax(1)
        if weight.shape[1] > 1:
            largest = torch.maximum(largest, (weight[:, :-1:2] + weight[:, 1::2]).abs().amax(1))
        quantized = torch.quantize_per_channel(weight, _step(largest).double(), zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(quantized, None)


def _multiply(x: torch.Tensor, packed: torch.ScriptObject) -> torch.Tensor:
    """The product with inputs from -1 to 1, which are rounded first."""
    return torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(x, 1 / LEVELS, INPUT_ZERO, packed)


def _scale(product: torch.Tensor, largest: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor) -> torch.Tensor:
    """Multiply by each row's largest input, and add the bias."""
    return torch.mul(product, largest, out=out) if bias is None else torch.addcmul(bias, product, largest, out=out)


class Int8Embedding(Int8Layer):
    """Does what a table of embeddings, in single precision on the CPU, does, with one int8 scale per word."""

    scales: torch.Tensor
    words: torch.Tensor

    def __init__(self, table: nn.Embedding):
        super().__init__()
        self.num_embeddings, self.embedding_dim = table.num_embeddings, table.embedding_dim
        self.padding_idx = table.padding_idx
        weight = table.weight.detach()
        scales = _step(weight.abs().amax(dim=1, keepdim=True))
        self.register_buffer("scales", scales, persistent=False)
        self.register_buffer("words", (weight / scales).round_().to(torch.int8), persistent=False)

    def forward(self, ids: torch.LongTensor) -> torch.Tensor:
        """Look up words: `(*)` to `(*, embedding_dim)`."""
        return nn.functional.embedding(ids, self.words) * nn.functional.embedding(ids, self.scales)

    @property
    def weight(self) -> torch.Tensor:
        """The table in single precision, made anew, for those who read it as a whole."""
        return self.words * self.scales


class Int8LstmCell(nn.Module):
    """One layer of an LSTM in one direction; arguments as `nn.LSTM.all_weights` has them."""

    def __init__(self, weight_ih: torch.Tensor, weight_hh: torch.Tensor, bias_ih: torch.Tensor, bias_hh: torch.Tensor):
        super().__init__()
        # As tanh(x) is 2·σ(2x) - 1, and σ takes a fifth of the time, gate g is asked for twice its input.
        factors = torch.ones(4, len(weight_ih) // 4)
        factors[2] = 2.0
        factors = factors.view(-1, 1)
        self.inputs = Int8Linear(weight_ih.detach() * factors, (bias_ih + bias_hh).detach() * factors.squeeze(1))
        self.hidden = Int8Linear(weight_hh.detach() * factors, None)

    def step(self, from_inputs: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take one step of some rows; returns the new h and c, `(rows, hidden_size)`, as those before it.

        `from_inputs`, `(rows, 4 * hidden_size)`, which `inputs` made, is overwritten.
        """
        i, f, g, o = self.hidden(h, from_inputs).sigmoid_().chunk(4, dim=1)
        c = torch.mul(f, c).sub_(i).addcmul_(i, g, value=2)
        h = torch.mul(c, 2).sigmoid_().sub_(0.5).mul_(o).mul_(2)
        return h, c


class Int8Lstm(Int8Layer):
    """Does what a single-precision `nn.LSTM` with `batch_first=True` on the CPU does, in int8, step after step."""

    def __init__(self, lstm: nn.LSTM):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = lstm.input_size, lstm.hidden_size, lstm.num_layers
        self.bidirectional = lstm.bidirectional
        # The name is that of the LSTMs of PyTorch's `quantize_dynamic`, by which `run_quantized` finds it.
        self._all_weight_values = nn.ModuleList(Int8LstmCell(*weights) for weights in lstm.all_weights)

    def forward(self, inputs: Any, state: tuple[torch.Tensor, torch.Tensor] | None = None):
        """Run as `nn.LSTM` does over `(batch, length, input_size)` or a packed sequence."""
        if not isinstance(inputs, PackedSequence):
            rows, length = inputs.shape[:2]
            x, state = self._run(inputs.transpose(0, 1).flatten(0, 1), [rows] * length, state)
            return x.unflatten(0, (length, rows)).transpose(0, 1), state
        if state is not None:
            h, c = state
            state = _select_rows(h, inputs.sorted_indices), _select_rows(c, inputs.sorted_indices)
        x, state = self._run(inputs.data, inputs.batch_sizes.tolist(), state)
        return inputs._replace(data=x), tuple(_select_rows(part, inputs.unsorted_indices) for part in state)

    def _run(self, x: torch.Tensor, sizes: list[int], state: tuple[torch.Tensor, torch.Tensor] | None):
        """Run all layers over words in the order of packed sequences, `sizes` of them a step."""
        if state is None:
            state = (x.new_zeros(len(self._all_weight_values), sizes[0], self.hidden_size),) * 2
        directions, finals = 2 if self.bidirectional else 1, []
        cells = zip(cast("Iterable[Int8LstmCell]", self._all_weight_values), *state, strict=True)
        for _ in range(self.num_layers):
            outputs = []
            for is_backward in range(directions):
                output, final = _run_cell(*next(cells), x, sizes, bool(is_backward))
                outputs.append(output)
                finals.append(final)
            x = torch.cat(outputs, dim=1) if self.bidirectional else outputs[0]
        return x, tuple(torch.stack(parts) for parts in zip(*finals, strict=True))


def _run_cell(
    cell: Int8LstmCell, h: torch.Tensor, c: torch.Tensor, x: torch.Tensor, sizes: list[int], is_backward: bool
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Run a cell over packed words; those of rows that have ended, or not begun, keep their state."""
    steps = list(cell.inputs(x).split(sizes))
    outputs: list[torch.Tensor] = [x] * len(steps)
    for place in reversed(range(len(steps))) if is_backward else range(len(steps)):
        count = sizes[place]
        outputs[place], new_c = cell.step(steps[place], h[:count], c[:count])
        is_all = count == len(h)
        h = outputs[place] if is_all else torch.cat((outputs[place], h[count:]))
        c = new_c if is_all else torch.cat((new_c, c[count:]))
    return torch.cat(outputs) if len(outputs) > 1 else outputs[0], (h, c)


def quantize_weights(model: nn.Module) -> None:
    """Replace a model's linear layers, LSTMs and tables of embeddings, in place, and give up their weights.

    Raises:
        InputError: PyTorch has no int8 products here, or the model is not in single precision on the CPU, or has
            neither linear layers nor LSTMs, as GPT-2, whose products are of a class of its own.
    """
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise InputError('`dtype="int8"` needs PyTorch with FBGEMM, on a CPU of the x86 family; take "fast" here')
    if any(p.device.type != "cpu" or p.dtype != torch.float32 for p in model.parameters()):
        raise InputError('`dtype="int8"` runs on the CPU alone: pass `device="cpu"`, or `dtype="fast"` for a GPU')
    weights, made = _count_weights(model), {}
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if child not in made and (replacement := _quantize_layer(child)) is not None:
                made[child] = replacement.train(child.training)
            if child in made:
                setattr(parent, name, made[child])
    if not any(isinstance(layer, Int8Linear | Int8Lstm) for layer in made.values()):
        raise InputError(
            '`dtype="int8"`: the model has no linear layers or LSTMs to quantise; take "float32" or "fast"'
        )
    model.requires_grad_(False)
    for kept in (*model.parameters(), *model.buffers()):
        kept.data = kept.data.clone()  # a tensor read from a file holds all of the file in memory
    cast("Any", model).int8_weights = weights - _count_weights(model)  # read by `count_parameters`


def count_parameters(model: nn.Module) -> int:
    """How many weights a model has, with those that are in int8 and so no parameters any more."""
    return _count_weights(model) + getattr(model, "int8_weights", 0)


def _quantize_layer(layer: nn.Module) -> Int8Layer | None:
    """The layer that replaces this one; None for those that stay."""
    # Subclasses of `nn.Linear` have methods of their own, or whoever holds them multiplies by their weights.
    if type(layer) is nn.Linear and layer.out_features >= FEWEST_OUTPUTS:
        return Int8Linear(layer.weight, layer.bias)
    if type(layer) is nn.LSTM and layer.bias and layer.batch_first and not layer.proj_size:
        return Int8Lstm(layer)
    if type(layer) is nn.Embedding and layer.weight.numel() >= FEWEST_TABLE_WEIGHTS:
        return Int8Embedding(layer)
    return None


def _count_weights(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _step(largest: torch.Tensor) -> torch.Tensor:
    """The step of integers of which 127 come to the largest number."""
    return (largest / LEVELS).clamp_min_(torch.finfo(largest.dtype).tiny)


def _select_rows(part: torch.Tensor, rows: torch.Tensor | None) -> torch.Tensor:
    return part if rows is None else part.index_select(1, rows)
