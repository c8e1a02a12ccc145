from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from .layer_weights import parameter_of
from .lstm_kernels import (
    IdentityOutputLstm,
    LstmState,
    order_of_real,
    replace_states,
    run_lstm,
    scan_lstm,
    select_states,
)
from .precision import at_least_single
from .products import PrepackedWeights
from .scan import is_traced


class AdditiveAttention(nn.Module):
    """Bahdanau attention: `softmax(v·tanh(W_q s + W_k h))` over the source states (Bahdanau et al. 2015, section 3.1).

    The projected keys depend on the source alone; compute them once with `project_keys` and reuse them at every step.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int):
        super().__init__()
        self.query = nn.Linear(query_size, attention_size)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, memory: Tensor) -> Tensor:
        """Map source states `(batch, source_length, memory_size)` to keys `(batch, source_length, attention_size)`."""
        return self.key(memory)

    def forward(
        self, queries: Tensor, keys: Tensor, memory: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend from every query to every real source state at once.

        Args:
            queries: As `query` maps them, `(batch, target_length, attention_size)`.
            keys: `project_keys(memory)`.
            memory: `(batch, source_length, memory_size)`.
            attention_mask: `(batch, source_length)`, 1 for real source positions, 0 for padding.

        Returns:
            The contexts `(batch, target_length, memory_size)` and the weights `(batch, target_length, source_length)`.
        """
        dtype = queries.dtype
        if queries.device.type == "cpu" and not torch.is_grad_enabled():
            # On a CPU half precision speeds up matrix products alone, and slows down the rest.
            queries, keys, memory = map(at_least_single, (queries, keys, memory))
        energies, vector = queries.unsqueeze(2) + keys.unsqueeze(1), parameter_of(self.score).to(queries.dtype)
        if queries.device.type == "cpu" and not torch.is_grad_enabled():
            # tanh(x) = 2·σ(2x) - 1, of which σ takes a sixth of the time, and softmax does not see the last term.
            energies, vector = energies.mul_(2).sigmoid_(), 2 * vector
        else:
            energies = energies.tanh_()
        scores = nn.functional.linear(energies, vector).squeeze(-1)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return (weights @ memory).to(dtype), weights.to(dtype)


@dataclass(eq=False)
class RecurrentCache:
    """The cache of a recurrent decoder between `generate()` steps, instead of transformers' key-value cache.

    Args:
        state: (h, c) of every decoder layer, each `(num_layers, batch, hidden_size)`.
        attention_keys: Projected source states `(batch, source_length, attention_size)`, made once from the encoder.
        seen_tokens: Number of decoder positions that the state covers.
        pair_keys: Projected states of a retrieved pair, each `(batch, length, attention_size)`, for a decoder that
            copies from it.
        beams: How many rows next to each other read one source: their attention keys are equal.
        prepacked: The decoder's weights as they are multiplied fastest.
    """

    # A recurrent state has a fixed size, but generate() must not compile against it as a static cache.
    is_compileable = False

    state: LstmState
    attention_keys: Tensor | None = None
    seen_tokens: int = 0
    pair_keys: tuple[Tensor, ...] = ()
    beams: int = 1
    prepacked: PrepackedWeights = field(default_factory=PrepackedWeights)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of decoder positions seen; the same for every layer."""
        return self.seen_tokens

    def update(self, state: LstmState, new_tokens: int) -> None:
        """Replace the state by the one that `new_tokens` more positions led to."""
        self.state = state
        self.seen_tokens += new_tokens

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep, for every beam, the state of the hypothesis `beam_idx` that it continues."""
        self.state = select_states(self.state, beam_idx)
        if self.attention_keys is not None and not self._stays_at_its_sources(self.attention_keys, beam_idx):
            self.attention_keys = self.attention_keys.index_select(0, beam_idx)
        self.pair_keys = tuple(keys.index_select(0, beam_idx) for keys in self.pair_keys)

    def _stays_at_its_sources(self, keys: Tensor, indices: Tensor) -> bool:
        """Whether each row keeps its source; otherwise, how many rows share one."""
        sources = torch.arange(len(keys), device=indices.device) // self.beams
        kept = sources[indices]
        if torch.equal(kept, sources):
            return True
        self.beams = math.gcd(*kept.unique_consecutive(return_counts=True)[1].tolist())
        return False


def count_source_beams(memory: Tensor) -> int:
    """How many rows next to each other are equal, in all the batch: the beams of one source, for which it is repeated.

    The rows are of the encoder's outputs, `(batch, source_length, memory_size)`.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or memory.device.type != "cpu" or len(memory) < 2:
        return 1
    starts = (memory[1:] != memory[:-1]).flatten(1).any(dim=1).nonzero().squeeze(1) + 1
    return math.gcd(*starts.tolist(), len(memory))


def fit_width(x: Tensor, width: int) -> Tensor:
    """Clip or zero-pad the last dimension of `x` to `width` (Prakash et al. 2016, section 2.3)."""
    return nn.functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] != width else x


class StackedLstm(nn.Module):
    """Vertically stacked LSTM layers with a residual connection after every `residual_interval` layers.

    `ĥ_t^(l) = f^l(h_t^(l-1), h_{t-1}^(l)) + x_{l-n}` (Prakash et al. 2016, section 2.3), x_{l-n} being the input of
    the group of n layers that ends at l. The sum goes upward only, so each group is one ordinary `nn.LSTM`, which
    `lstm_kernels` runs, with one addition after it. Layers left over at the top, fewer than n, form a last group
    without an addition; with `residual_interval=0` all layers are one group. Dropout follows every layer, before the
    addition.

    Args:
        input_size: Width of the inputs.
        hidden_size: Units of every layer, in each direction.
        num_layers: Number of layers.
        residual_interval: Layers that a residual connection spans; 0 for none.
        dropout: Probability of dropping a layer's output.
        bidirectional: Run every layer in both directions; outputs are `2 * hidden_size` wide.
        cell_output: `"tanh"` for h = o·tanh(c), `"identity"` for h = o·c.
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
        inputs: Tensor,
        attention_mask: Tensor | None = None,
        state: LstmState | None = None,
        output_hidden_states: bool = False,
        prepacked: PrepackedWeights | None = None,
    ) -> tuple[Tensor, LstmState, tuple[Tensor, ...] | None]:
        """Run all layers over whole sequences; positions that the mask leaves out change nothing and cost nothing.

        Args:
            inputs: `(batch, length, input_size)`.
            attention_mask: `(batch, length)`, 1 for real positions, 0 for padding, which may be anywhere.
            state: (h, c) to start from, each `(num_layers * num_directions, batch, hidden_size)`; zeros by default.
            output_hidden_states: Also return every layer's output, which is slower.
            prepacked: Keeps the weights between calls with a single position each, which are faster by it.

        Returns:
            The outputs `(batch, length, output_size)`, zero at padding; the final (h, c) after each row's last real
            position; and, if asked for, a tuple of `num_layers` outputs shaped like the first.
        """
        shape = rows, length = inputs.shape[:2]
        state = self._zeros(inputs, rows) if state is None else state
        if is_traced():
            layers, state = self._scan(inputs, attention_mask, state)
        elif attention_mask is None or bool(attention_mask.all()):
            words, sizes = inputs.transpose(0, 1).flatten(0, 1), [rows] * length
            layers, state = self.run_packed(words, sizes, state, output_hidden_states, prepacked)
            layers = [layer.unflatten(0, (length, rows)).transpose(0, 1) for layer in layers]
        else:
            order = order_of_real(attention_mask.bool())
            words, start = inputs.flatten(0, 1)[order.words], select_states(state, order.sentences)
            layers, final = self.run_packed(words, order.sizes, start, output_hidden_states)
            layers = [_unpack(layer, order.words, shape) for layer in layers]
            state = replace_states(state, order.sentences, final)
        return layers[-1], state, tuple(layers) if output_hidden_states else None

    @torch.compiler.disable
    def run_packed(
        self,
        inputs: Tensor,
        sizes: list[int],
        state: LstmState | None = None,
        every_layer: bool = False,
        prepacked: PrepackedWeights | None = None,
    ) -> tuple[list[Tensor], LstmState]:
        """Run all layers over packed words (`packed_order`).

        Args:
            inputs: `(words, input_size)`.
            sizes: Words of each step.
            state: (h, c) to start from, as in `forward`, the longest sequence first.
            every_layer: Return every layer's outputs, which is slower.
            prepacked: As in `forward`.

        Returns:
            Outputs `(words, output_size)` of every layer, or of some of them and the last; and the final (h, c).
        """
        state = self._zeros(inputs, sizes[0] if sizes else 0) if state is None else state
        if not sizes:
            return [inputs.new_zeros(0, self.output_size)] * len(state[0]), state
        run = run_lstm
        if self.gradient_checkpointing and self.training:
            run = partial(self._gradient_checkpointing_func, run_lstm)
        options = sizes, self.dropout, every_layer, prepacked
        return self._stack(lambda lstm, x, start: run(lstm, x, start, *options), inputs, state)

    def _scan(self, inputs: Tensor, mask: Tensor | None, state: LstmState):
        mask = inputs.new_ones(inputs.shape[:2]) if mask is None else mask
        real = mask.bool().t().unsqueeze(-1)
        run = partial(scan_lstm, real=real, dropout=self.dropout)
        layers, state = self._stack(run, inputs.transpose(0, 1), state)
        return [layer.masked_fill(~real, 0.0).transpose(0, 1) for layer in layers], state

    def _stack(self, run: Callable, x: Tensor, state: LstmState) -> tuple[list[Tensor], LstmState]:
        """Stack the groups of layers, each run by `run(lstm, x, state)`."""
        layers, finals = [], []
        starts = (part.split(self._state_sizes) for part in state)
        for group, *start in zip(self._lstms, *starts, strict=True):
            outputs, final = run(group, x, tuple(start))
            if group.num_layers == self.residual_interval:
                outputs[-1] = outputs[-1] + fit_width(x, self.output_size)
            x = outputs[-1]
            layers += outputs
            finals.append(final)
        h, c = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*finals, strict=True))
        return layers, (h, c)

    @property
    def _lstms(self) -> list[nn.LSTM]:
        """The groups; a quantized one has the attributes of an LSTM that are used here."""
        return [cast(nn.LSTM, group) for group in self.groups]

    @property
    def _state_sizes(self) -> list[int]:
        return [group.num_layers * (2 if group.bidirectional else 1) for group in self._lstms]

    def _zeros(self, inputs: Tensor, rows: int) -> LstmState:
        zeros = inputs.new_zeros(sum(self._state_sizes), rows, self._lstms[0].hidden_size)
        return zeros, zeros


def _unpack(x: Tensor, places: Tensor, shape: torch.Size) -> Tensor:
    """Put packed words back at their places of a batch, with zeros elsewhere."""
    return x.new_zeros(shape.numel(), x.shape[-1]).index_copy(0, places, x).unflatten(0, shape)
