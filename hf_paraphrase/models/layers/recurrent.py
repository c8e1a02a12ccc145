from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from transformers.utils import logging

from .layer_weights import at_hand, one_layer
from .packed_lstm import run_packed_lstm
from .precision import runs_lstm
from .prepacked_weights import PrepackedWeights, can_prepack
from .scan import is_traced, scan_lstm_layer

__all__ = ["LstmState", "RecurrentCache", "StackedLstm", "count_source_beams", "fit_width"]

logger = logging.get_logger(__name__)

LstmState = tuple[torch.Tensor, torch.Tensor]
"""The pair (h, c), each `(num_layers * num_directions, batch, hidden_size)` as `torch.nn.LSTM` has them."""


class RecurrentCache:
    """The cache of a recurrent decoder between `generate()` steps, instead of transformers' key-value cache.

    Args:
        state: (h, c) of every decoder layer, each `(num_layers, batch, hidden_size)`.
        attention_keys: Projected source states `(batch, source_length, attention_size)`, made once from the encoder.
        seen_tokens: Number of decoder positions that the state covers.
        pair_keys: Projected states of a retrieved pair, each `(batch, length, attention_size)`, for a decoder that
            copies from it.
        beams: How many rows next to each other read one source: their attention keys are equal.
    """

    # A recurrent state has a fixed size, but generate() must not compile against it as a static cache.
    is_compileable = False

    def __init__(
        self,
        state: LstmState,
        attention_keys: torch.Tensor | None = None,
        seen_tokens: int = 0,
        pair_keys: tuple[torch.Tensor, ...] = (),
        beams: int = 1,
    ):
        self.state = state
        self.attention_keys = attention_keys
        self.seen_tokens = seen_tokens
        self.pair_keys = pair_keys
        self.beams = beams
        self.prepacked = PrepackedWeights()

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of decoder positions seen; the same for every layer."""
        return self.seen_tokens

    def update(self, state: LstmState, new_tokens: int) -> None:
        """Replace the state by the one that `new_tokens` more positions led to."""
        self.state = state
        self.seen_tokens += new_tokens

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Keep, for every beam, the state of the hypothesis `beam_idx` that it continues."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows `indices` of the batch, in that order."""
        h, c = self.state
        self.state = (h.index_select(1, indices), c.index_select(1, indices))
        if self.attention_keys is not None and not self._stays_at_its_sources(self.attention_keys, indices):
            self.attention_keys = self.attention_keys.index_select(0, indices)
        self.pair_keys = tuple(keys.index_select(0, indices) for keys in self.pair_keys)

    def _stays_at_its_sources(self, keys: torch.Tensor, indices: torch.Tensor) -> bool:
        """Whether each row keeps its source; otherwise, how many rows share one."""
        sources = torch.arange(len(keys), device=indices.device) // self.beams
        kept = sources[indices]
        if torch.equal(kept, sources):
            return True
        self.beams = math.gcd(*kept.unique_consecutive(return_counts=True)[1].tolist())
        return False

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row of the batch `repeats` times, next to each other."""
        batch_size = self.state[0].shape[1]
        rows = torch.arange(batch_size, device=self.state[0].device)
        self.batch_select_indices(rows.repeat_interleave(repeats))


def count_source_beams(memory: torch.Tensor) -> int:
    """How many rows next to each other are equal, in all the batch: the beams of one source, for which it is repeated.

    Args:
        memory: The encoder's outputs, `(batch, source_length, memory_size)`.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or memory.device.type != "cpu" or len(memory) < 2:
        return 1
    starts = (memory[1:] != memory[:-1]).flatten(1).any(dim=1).nonzero().squeeze(1) + 1
    return math.gcd(*starts.tolist(), len(memory))


def fit_width(x: torch.Tensor, width: int) -> torch.Tensor:
    """Clip or zero-pad the last dimension of `x` to `width` (Prakash et al. 2016, section 2.3)."""
    return nn.functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] != width else x


class StackedLstm(nn.Module):
    """Vertically stacked LSTM layers with a residual connection after every `residual_interval` layers.

    `ĥ_t^(l) = f^l(h_t^(l-1), h_{t-1}^(l)) + x_{l-n}` (Prakash et al. 2016, section 2.3), x_{l-n} being the input of
    the group of n layers that ends at l. The sum goes upward only, so each group is one ordinary, fused `nn.LSTM` with
    one addition after it. Layers left over at the top, fewer than n, form a last group without an addition; with
    `residual_interval=0` all layers are one group. Dropout follows every layer, before the addition.

    Args:
        input_size: Width of the inputs.
        hidden_size: Units of every layer, in each direction.
        num_layers: Number of layers.
        residual_interval: Layers that a residual connection spans; 0 for none.
        dropout: Probability of dropping a layer's output.
        bidirectional: Run every layer in both directions; outputs are `2 * hidden_size` wide.
        cell_output: `"tanh"` for h = o·tanh(c), `"identity"` for h = o·c, which has no fused kernel.
    """

    _gradient_checkpointing_func: Callable[..., Any]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        residual_interval: int = 0,
        dropout: float = 0.0,
        bidirectional: bool = False,
        cell_output: Literal["tanh", "identity"] = "tanh",
    ):
        super().__init__()
        self.output_size = 2 * hidden_size if bidirectional else hidden_size
        self.residual_interval = residual_interval
        self.gradient_checkpointing = False
        self.groups = nn.ModuleList()
        group_size = residual_interval or num_layers
        group_class = nn.LSTM if cell_output == "tanh" else IdentityOutputLstm
        for first_layer in range(0, num_layers, group_size):
            layers = min(group_size, num_layers - first_layer)
            self.groups.append(
                group_class(
                    input_size if first_layer == 0 else self.output_size,
                    hidden_size,
                    num_layers=layers,
                    dropout=dropout if layers > 1 else 0.0,
                    bidirectional=bidirectional,
                    batch_first=True,
                )
            )
        self.dropout = nn.Dropout(dropout)

    # torch.compile cannot trace packed sequences, and has nothing to gain on a fused LSTM.
    @torch.compiler.disable
    def forward(
        self,
        inputs: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        state: LstmState | None = None,
        output_hidden_states: bool = False,
        prepacked: PrepackedWeights | None = None,
    ) -> tuple[torch.Tensor, LstmState, tuple[torch.Tensor, ...] | None]:
        """Run all layers over whole sequences; positions that the mask leaves out change nothing and cost nothing.

        Args:
            inputs: `(batch, length, input_size)`.
            attention_mask: `(batch, length)`, 1 for real positions, 0 for padding, which may be anywhere.
            state: (h, c) to start from, each `(num_layers * num_directions, batch, hidden_size)`; zeros by default.
            output_hidden_states: Also return every layer's output. It runs the layers one by one, which is slower.
            prepacked: Keeps the weights between calls with a single position each, which are faster by it.

        Returns:
            The outputs `(batch, length, output_size)`, zero at padding; the final (h, c) after each row's last real
            position; and, if asked for, a tuple of `num_layers` outputs shaped like the first.
        """
        if is_traced():
            return self.scan(inputs, attention_mask, state, output_hidden_states)
        real = _RealPositions.of(attention_mask)
        if real is None:
            if prepacked is not None and state is not None and not output_hidden_states and self._is_step(inputs):
                return *self._step_prepacked(inputs[:, 0], state, prepacked), None
            return self._run(inputs, state, output_hidden_states)
        packed, final_state, layers = self._run(real.pack(inputs), state, output_hidden_states)
        start = (torch.zeros_like(part) for part in final_state) if state is None else state
        h, c = (torch.where(real.empty_rows, old, new) for old, new in zip(start, final_state, strict=True))
        layers = None if layers is None else tuple(map(real.unpack, layers))
        return real.unpack(packed), (h, c), layers

    def scan(
        self,
        inputs: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        state: LstmState | None = None,
        output_hidden_states: bool = False,
    ) -> tuple[torch.Tensor, LstmState, tuple[torch.Tensor, ...] | None]:
        """Do what `forward` does, slower, in operations that `torch.export` can trace for any length."""
        real = attention_mask if attention_mask is not None else inputs.new_ones(inputs.shape[:2])
        x, real = inputs.transpose(0, 1), real.bool().t().unsqueeze(-1)
        layer_outputs, finals = [], []
        for group, group_state in zip(map(at_hand, self._lstms), self._split(state), strict=True):
            residual = x
            directions = 2 if group.bidirectional else 1
            if group_state is None:
                group_state = (x.new_zeros(group.num_layers * directions, x.shape[1], group.hidden_size),) * 2
            for layer in range(group.num_layers):
                outputs = []
                for number in range(layer * directions, (layer + 1) * directions):
                    start = (group_state[0][number], group_state[1][number])
                    is_backward = bool(number % directions)
                    has_tanh = not isinstance(group, IdentityOutputLstm)
                    output, final = scan_lstm_layer(x, real, group.all_weights[number], start, has_tanh, is_backward)
                    outputs.append(output)
                    finals.append(final)
                x = self.dropout(torch.cat(outputs, dim=-1))
                layer_outputs.append(x)
            x = layer_outputs[-1] = self._add_residual(group, residual, x)
        outputs = [output.masked_fill(~real, 0.0).transpose(0, 1) for output in layer_outputs]
        h, c = (torch.stack(parts) for parts in zip(*finals, strict=True))
        return outputs[-1], (h, c), tuple(outputs) if output_hidden_states else None

    @torch.compiler.disable
    def run_packed(self, inputs: PackedSequence, state: LstmState | None = None) -> tuple[torch.Tensor, LstmState]:
        """Run all layers over sequences that are packed already, the longest first.

        Args:
            inputs: `(words, input_size)` of data.
            state: (h, c) to start from, as in `forward`, the sequences in the order of the packed ones.

        Returns:
            The outputs' data `(words, output_size)`, and the final (h, c); without any sequence, empty tensors.
        """
        if not len(inputs.batch_sizes):
            x = inputs.data
            hidden_size = self._lstms[0].hidden_size
            layers = sum(group.num_layers for group in self._lstms) * (self.output_size // hidden_size)
            empty = x.new_zeros(layers, 0, hidden_size)
            return x.new_zeros(0, self.output_size), (empty, empty)
        outputs, state, _ = self._run(inputs, state, False)
        return outputs.data, state

    @property
    def _lstms(self) -> list[nn.LSTM]:
        """The groups; a quantized one has the attributes of an LSTM that are used here."""
        return [cast(nn.LSTM, group) for group in self.groups]

    def _run(self, inputs, state: LstmState | None, output_hidden_states: bool):
        if not _lacks_kernel(inputs):
            return self._run_groups(inputs, state, output_hidden_states)
        dtype = cast(torch.Tensor, self._lstms[0].weight_ih_l0).dtype
        with torch.autocast("cpu", enabled=False):
            state = None if state is None else (state[0].to(dtype), state[1].to(dtype))
            return self._run_groups(inputs.to(dtype), state, output_hidden_states)

    def _run_groups(self, inputs, state: LstmState | None, output_hidden_states: bool):
        group_states, layer_outputs, x = [], [], inputs
        for group, group_state in zip(map(at_hand, self._lstms), self._split(state), strict=True):
            if output_hidden_states:
                outputs, group_state, group_layers = self._run_layer_by_layer(group, x, group_state)
                layer_outputs += group_layers
            elif self.gradient_checkpointing and self.training:
                outputs, group_state = self._gradient_checkpointing_func(self._run_group, group, x, group_state)
            else:
                outputs, group_state = self._run_group(group, x, group_state)
            x = self._add_residual(group, x, outputs)
            if output_hidden_states:
                layer_outputs[-1] = x
            group_states.append(group_state)
        h, c = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*group_states, strict=True))
        return x, (h, c), tuple(layer_outputs) if output_hidden_states else None

    def _run_group(self, group: nn.LSTM, x, state: LstmState | None):
        if state is not None and _is_step_on_cpu(group, x):
            return self._step(group, x, state)
        outputs, state = run_packed_lstm(group, x, state) if _is_slow_on_cpu(group, x) else group(x, state)
        return _apply(self.dropout, outputs), state

    def _step(self, group: nn.LSTM, x: torch.Tensor, state: LstmState):
        """Run one position cell by cell: on a CPU, a fused call repacks all weights, which takes longer than the
        step."""
        x, cells = x[:, 0], []
        for weights, h, c in zip(group.all_weights, *state, strict=True):
            cells.append(torch.lstm_cell(x, (h, c), *weights))
            x = self.dropout(cells[-1][0])
        h, c = (torch.stack(parts) for parts in zip(*cells, strict=True))
        return x.unsqueeze(1), (h, c)

    def _is_step(self, inputs: torch.Tensor) -> bool:
        first = self._lstms[0]
        is_step = inputs.shape[1] == 1 and not self.training
        return is_step and _is_plain(first) and can_prepack(inputs, cast(torch.Tensor, first.weight_ih_l0))

    def _step_prepacked(
        self, x: torch.Tensor, state: LstmState, prepacked: PrepackedWeights
    ) -> tuple[torch.Tensor, LstmState]:
        """Take one position `(batch, input_size)`, each layer in one kernel."""
        before, after = zip(*state, strict=True), []
        for group in self._lstms:
            inputs = x
            for layer in range(group.num_layers):
                after.append(prepacked.lstm_cell(group, layer, x, *next(before)))
                x = after[-1][0]
            x = self._add_residual(group, inputs, x)
        h, c = (torch.stack(parts) for parts in zip(*after, strict=True))
        return x.unsqueeze(1), (h, c)

    def _add_residual(self, group: nn.LSTM, x, outputs):
        if group.num_layers != self.residual_interval:
            return outputs
        return _apply(lambda out, residual: out + fit_width(residual, self.output_size), outputs, x)

    def _split(self, state: LstmState | None) -> Iterator[LstmState | None]:
        if state is None:
            yield from (None for _ in self.groups)
            return
        sizes = [group.num_layers * (2 if group.bidirectional else 1) for group in self._lstms]
        yield from zip(*(part.split(sizes) for part in state), strict=True)

    def _run_layer_by_layer(self, group: nn.LSTM, x, state: LstmState | None):
        outputs, finals, directions = [], [], 2 if group.bidirectional else 1
        for layer in range(group.num_layers):
            rows = slice(layer * directions, (layer + 1) * directions)
            layer_state = None if state is None else tuple(part[rows] for part in state)
            x, final = one_layer(group, layer)(x, layer_state)
            x = _apply(self.dropout, x)
            outputs.append(x)
            finals.append(final)
        h, c = (torch.cat(parts) for parts in zip(*finals, strict=True))
        return x, (h, c), outputs


class IdentityOutputLstm(nn.LSTM):
    """Stacked LSTM layers with h = o·c, without the tanh (Li et al. 2015, equations 1 to 3); one direction only."""

    def forward(self, inputs, state: LstmState | None = None):
        """Run as `nn.LSTM` does over `(batch, length, input_size)` or a packed sequence."""
        if isinstance(inputs, PackedSequence):
            return run_packed_lstm(self, inputs, state, "identity")
        rows, length = inputs.shape[:2]
        packed = PackedSequence(inputs.transpose(0, 1).flatten(0, 1), torch.full((length,), rows))
        outputs, state = run_packed_lstm(self, packed, state, "identity")
        return outputs.data.unflatten(0, (length, rows)).transpose(0, 1), state


def _lacks_kernel(inputs) -> bool:
    """Whether autocast asks for an LSTM precision that this CPU lacks; warns once."""
    device = (inputs.data if isinstance(inputs, PackedSequence) else inputs).device
    if device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return False
    dtype = torch.get_autocast_dtype("cpu")
    if runs_lstm(dtype):
        return False
    logger.warning_once(f"this CPU cannot run LSTMs in {dtype}: they run in the precision of their weights")
    return True


def _is_step_on_cpu(group: nn.LSTM, x) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == "cpu" and x.shape[1] == 1 and _is_plain(group)


def _is_slow_on_cpu(group: nn.LSTM, x) -> bool:
    is_packed = isinstance(x, PackedSequence) and x.data.device.type == "cpu" and torch.is_grad_enabled()
    return is_packed and _is_plain(group)


def _is_plain(group: nn.LSTM) -> bool:
    return type(group) is nn.LSTM and not group.bidirectional


def _apply(function, x, *others):
    """Apply an element-wise function to tensors, or to the data of packed sequences of the same rows."""
    if isinstance(x, PackedSequence):
        return x._replace(data=function(x.data, *(other.data for other in others)))
    return function(x, *others)


class _RealPositions:
    """The real positions of a padded batch, and conversion to a packed sequence and back."""

    def __init__(self, mask: torch.Tensor, lengths: torch.Tensor):
        self.mask = mask
        # A packed sequence needs one step a row: an empty row takes a step whose results are thrown away.
        self.lengths = lengths.clamp(min=1)
        self.empty_rows = ~mask.any(dim=1)[None, :, None]
        self.order = mask.logical_not().to(torch.uint8).argsort(dim=1, stable=True)

    @classmethod
    def of(cls, attention_mask: torch.Tensor | None) -> _RealPositions | None:
        """Return None where every position is real, so that nothing need be packed."""
        if attention_mask is None:
            return None
        mask = attention_mask.bool()
        lengths = mask.sum(dim=1).cpu()
        return None if bool((lengths == mask.shape[1]).all()) else cls(mask, lengths)

    def pack(self, x: torch.Tensor) -> PackedSequence:
        """Gather the real positions of `(batch, length, width)` row by row."""
        aligned = x.gather(1, self.order.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        return pack_padded_sequence(aligned, self.lengths, batch_first=True, enforce_sorted=False)

    def unpack(self, packed: PackedSequence) -> torch.Tensor:
        """Scatter the outputs back to the positions of their inputs, zeros elsewhere."""
        aligned, _ = pad_packed_sequence(packed, batch_first=True, total_length=self.mask.shape[1])
        inverse = self.order.argsort(dim=1)
        x = aligned.gather(1, inverse.unsqueeze(-1).expand(-1, -1, aligned.shape[-1]))
        return x.masked_fill(~self.mask.unsqueeze(-1), 0.0)
