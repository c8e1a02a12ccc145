from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from ..layers.layer_weights import parameter_of
from ..layers.scan import is_traced
from ..layers.sentence_pair import (
    MatchingHead,
    PairSide,
    SentencePairClassifier,
    SentencePairPreTrainedModel,
    split_pair,
)
from ..layers.token_ids import embed
from .configuration_coupled_lstm import CoupledLstmConfig
from .grid import DIRECTIONS, GridOrder
from .wavefront import ScanOrder, coupled_lstm, scan_coupled_lstm


class CoupledLstmPreTrainedModel(SentencePairPreTrainedModel):
    config_class = CoupledLstmConfig
    supports_gradient_checkpointing = True
    _no_split_modules = ["CoupledLstmBlock"]


class TightCell(nn.Module):
    """The affine map T of the tightly coupled LSTM, whose rows are the gates c̃, o, i, f1, f2.

    `T(x_i, y_j, h_{i,j-1}, h_{i-1,j})` in the first block; above it h of the block below stands for x_i and y_j. The
    recurrent weights of a first block with `match_features` have columns for these behind those of h. Of the first
    block (`is_first`), the inputs are words.
    """

    def __init__(self, config: CoupledLstmConfig, is_first: bool):
        super().__init__()
        gates, states = 5 * config.hidden_size, 2 * config.hidden_size
        if is_first:
            states += config.num_features
            self.input_x = nn.Linear(config.embedding_size, gates)
            self.input_y = nn.Linear(config.embedding_size, gates, bias=False)
        else:
            self.input = nn.Linear(config.hidden_size, gates)
        self.recurrent = nn.ModuleList([nn.Linear(states, gates, bias=False)])
        self.is_first = is_first

    def project(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """Project what enters from below, as `CoupledLstmBlock.forward` gets it, to inputs of `coupled_lstm`."""
        return [self.input_x(x), self.input_y(y)] if self.is_first else [self.input(x)]

    @property
    def weights(self) -> list[Tensor]:
        """The recurrent weights of each LSTM."""
        return [parameter_of(self.recurrent[0])]


class LooseCell(nn.Module):
    """The affine maps of the two loosely coupled LSTMs, whose rows are the gates c̃, o, i, f.

    `LSTM1([h1_{i-1,j}; h2_{i-1,j}], x_i)` and `LSTM2([h1_{i,j-1}; h2_{i,j-1}], y_j)`. Above the first block, h1 of the
    block below stands for x_i and h2 for y_j: "x_i and y_j are accepted by two corresponding LSTMs at the higher layer
    separately" (section 3.3). With `share_lstms` one LSTM goes along both sentences. Features have their columns, and
    `is_first` its meaning, as in `TightCell`.
    """

    def __init__(self, config: CoupledLstmConfig, is_first: bool):
        super().__init__()
        gates, width, states = 4 * config.hidden_size, config.hidden_size, 2 * config.hidden_size
        if is_first:
            width, states = config.embedding_size, states + config.num_features
        lstms = 1 if config.share_lstms else 2
        self.inputs = nn.ModuleList(nn.Linear(width, gates) for _ in range(lstms))
        self.recurrent = nn.ModuleList(nn.Linear(states, gates, bias=False) for _ in range(lstms))
        self.is_first = is_first

    def project(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """Project what enters from below, as `CoupledLstmBlock.forward` gets it, to inputs of `coupled_lstm`."""
        if not self.is_first:
            x, y = x.chunk(2, dim=-1)
        return [self.inputs[0](x), self.inputs[-1](y)]

    @property
    def weights(self) -> list[Tensor]:
        """The recurrent weights of LSTM1 and of LSTM2."""
        return [parameter_of(self.recurrent[0]), parameter_of(self.recurrent[-1])]


class CoupledLstmBlock(GradientCheckpointingLayer):
    """Coupled LSTMs in all directions, and the sum of their hidden states (Liu et al. 2016, section 4.2)."""

    def __init__(self, config: CoupledLstmConfig, is_first: bool):
        super().__init__()
        cell_class = TightCell if config.coupling == "tight" else LooseCell
        cells = 1 if config.share_directions else config.num_directions
        self.cells = nn.ModuleList(cell_class(config, is_first) for _ in range(cells))
        self.coupling = config.coupling

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        orders: list[GridOrder] | list[ScanOrder],
        features: Tensor | None = None,
        is_pair: Tensor | None = None,
    ) -> Tensor:
        """Run the block over a batch of grids.

        Args:
            x: Words of X, `(batch, n, 1, embedding_size)`; above the first block, h of the block below,
                `(batch, n, m, grid_size)`.
            y: Words of Y, `(batch, 1, m, embedding_size)`; above the first block, the same as `x`.
            orders: For each cell, the order of its directions.
            features: In the first block, those of `match_features`, if the configuration has them.
            is_pair: Where two words meet, `(batch, n, m, 1)`; everywhere by default.

        Returns:
            h summed over the directions, `(batch, n, m, grid_size)`, zero where no words meet.
        """
        run: Callable[..., Tensor] = scan_coupled_lstm if is_traced() else coupled_lstm
        cells = (cast(TightCell | LooseCell, cell) for cell in self.cells)
        grids = [
            run(cell.project(x, y), cell.weights, order, self.coupling, features)
            for cell, order in zip(cells, orders, strict=True)
        ]
        grid = grids[0] if len(grids) == 1 else torch.stack(grids).sum(0)
        return grid if is_pair is None else torch.where(is_pair, grid, 0)


class CoupledLstmModel(CoupledLstmPreTrainedModel):
    """Stacked blocks of coupled LSTMs over two sentences, and dynamic pooling (Liu et al. 2016, section 4)."""

    _can_record_outputs = {"hidden_states": OutputRecorder(CoupledLstmBlock, capture_initial_hidden_state=False)}

    def __init__(self, config: CoupledLstmConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.blocks = nn.ModuleList(CoupledLstmBlock(config, is_first=not k) for k in range(config.num_blocks))
        self.post_init()

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pair_input_ids: Tensor | None = None,
        pair_attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> BaseModelOutputWithPooling:
        """Encode both sentences together; the inputs are those of `split_pair`, as ids only, without `inputs_embeds`.

        Args:
            output_hidden_states: Return every block's output.

        Returns:
            `last_hidden_state`, h of the last block at every pair of words, `(batch, n, m, grid_size)`, zero at
            padding, each sentence's words first; `pooler_output`, `(batch, p * q * grid_size)`; and, if asked for,
            `hidden_states`, one grid a block.

        Raises:
            ValueError: The batch has more pairs of words than `config.max_grid_cells`.
        """
        x, y = split_pair(input_ids, attention_mask, token_type_ids, pair_input_ids, pair_attention_mask)
        batch, n = x.input_ids.shape
        self._check_cells(batch, n, y.input_ids.shape[1])
        x_words, y_words = (embed(self.embed_tokens, side.input_ids, "input_ids") for side in (x, y))
        lower = x_words.unsqueeze(2), y_words.unsqueeze(1)
        features = None
        if self.config.match_features:
            features = match_features(x, y, x_words, y_words, self.config.unk_token_id)
        is_pair = (x.mask.unsqueeze(2) & y.mask.unsqueeze(1)).unsqueeze(-1)
        orders = self._make_orders(x, y)
        for block in self.blocks:
            grid = block(*lower, orders, features, is_pair)
            lower, features = (grid, grid), None
        return BaseModelOutputWithPooling(
            last_hidden_state=grid, pooler_output=pool(grid, x.lengths, y.lengths, self.config.pooling_size)
        )

    def _check_cells(self, batch: int, n: int, m: int) -> None:
        most, cells = self.config.max_grid_cells, batch * n * m
        # What is traced gets its sizes from elsewhere, and a symbolic one is not compared.
        if not is_traced() and most is not None and cells > most:
            raise ValueError(
                f"`input_ids`: {batch} pairs of up to {n:,} and {m:,} words are {cells:,} grid cells, more than "
                f"`config.max_grid_cells` = {most:,}: pass fewer pairs at once, or cut them (`truncation=True`, "
                "`max_length=…`)"
            )

    def _make_orders(self, x: PairSide, y: PairSide) -> list[GridOrder] | list[ScanOrder]:
        directions = DIRECTIONS[: self.config.num_directions]
        groups = [directions] if self.config.share_directions else [(direction,) for direction in directions]
        if is_traced():
            return [ScanOrder(x.lengths, y.lengths, group) for group in groups]
        sizes = x.input_ids.shape[1], y.input_ids.shape[1]
        return [GridOrder(x.lengths, y.lengths, *sizes, group) for group in groups]


class CoupledLstmForSequenceClassification(SentencePairClassifier, CoupledLstmPreTrainedModel):
    """Coupled LSTMs with a fully connected layer and an output layer: labels of a pair, or one score."""

    def __init__(self, config: CoupledLstmConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = CoupledLstmModel(config)
        p, q = config.pooling_size
        self.head = MatchingHead(p * q * config.grid_size, config)
        self.post_init()

    def read_pair(
        self, *inputs: Any, output_hidden_states: bool | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        outputs = self.model(*inputs, output_hidden_states=output_hidden_states, return_dict=True)
        return outputs.pooler_output, outputs.hidden_states


def match_features(x: PairSide, y: PairSide, x_words: Tensor, y_words: Tensor, unk_token_id: int | None) -> Tensor:
    """Say of each pair of words whether they are the same, and the cosine of their vectors.

    Args:
        x: One side of a batch of pairs, of n words.
        y: The other, of m words.
        x_words: Vectors of X, `(batch, n, size)`.
        y_words: Vectors of Y, `(batch, m, size)`.
        unk_token_id: An unknown word, equal or similar to no other: its features are zeros.

    Returns:
        `(batch, n, m, 2)`.
    """
    x_unit, y_unit = (nn.functional.normalize(words, dim=-1) for words in (x_words, y_words))
    cosine = x_unit @ y_unit.transpose(1, 2)
    x_ids, y_ids = x.input_ids.unsqueeze(2), y.input_ids.unsqueeze(1)
    features = torch.stack(((x_ids == y_ids).to(cosine.dtype), cosine), dim=-1)
    if unk_token_id is None:
        return features
    is_known = (x_ids != unk_token_id) & (y_ids != unk_token_id)
    return features * is_known.unsqueeze(-1)


def pool(grid: Tensor, x_lengths: Tensor, y_lengths: Tensor, size: tuple[int, int]) -> Tensor:
    """Cut each row's n × m grid into p × q roughly equal cells and take each unit's maximum in each.

    Cell a of p has the words from ⌊a n / p⌋ up to ⌊(a + 1) n / p⌋. A sentence of n < p words is stretched: a cell that
    would have none has the word ⌊a n / p⌋. A row with an empty sentence gives zeros.

    Args:
        grid: `(batch, n, m, width)`.
        x_lengths: `(batch,)`, words of X in each row.
        y_lengths: `(batch,)`, words of Y in each row.
        size: (p, q).

    Returns:
        `(batch, p * q * width)`, cell after cell.
    """
    for dim, (lengths, cells) in enumerate(zip((x_lengths, y_lengths), size, strict=True), start=1):
        shape = [-1, 1, 1, 1]
        shape[dim] = grid.shape[dim]
        is_inside = _members(lengths, grid.shape[dim], cells).unbind(1)
        grid = torch.stack([torch.where(inside.view(shape), grid, -torch.inf).amax(dim) for inside in is_inside], dim)
    is_empty = (x_lengths * y_lengths == 0).view(-1, 1)
    return grid.flatten(1).masked_fill(is_empty, 0)


def _members(lengths: Tensor, size: int, cells: int) -> Tensor:
    """Say which of `size` places each of the `cells` cells has in rows of these lengths, `(batch, cells, size)`."""
    bounds = torch.arange(cells + 1, device=lengths.device) * lengths.unsqueeze(1) // cells
    start, stop = bounds[:, :-1], torch.maximum(bounds[:, 1:], bounds[:, :-1] + 1)
    places = torch.arange(size, device=lengths.device)
    return (places >= start.unsqueeze(2)) & (places < stop.unsqueeze(2))
