"""What excites the units of a coupled LSTM: heat maps and tables of word pairs (Liu et al. 2016, section 5)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from ..common.errors import InputError
from ..common.pictures import in_style, new_figure, save_figure
from ..generation.loading import load_pair_model
from ..models.coupled_lstm.modeling_coupled_lstm import CoupledLstmForSequenceClassification
from ..models.layers.sentence_pair import split_pair


class PairGrid(NamedTuple):
    """The last block's h over two sentences."""

    x: list[str]  # words of the first, its end mark included
    y: list[str]  # words of the second
    h: torch.Tensor  # `(len(x), len(y), units)`


class ExcitingPair(NamedTuple):
    """Two words, and the activation of a unit there."""

    activation: float
    x: str
    y: str


def load_matcher(
    path: str | os.PathLike, trust_remote_code: bool = False
) -> tuple[CoupledLstmForSequenceClassification, PreTrainedTokenizerBase]:
    """Load a coupled LSTM and its tokenizer from a folder or Hub repository; raises InputError for a model without a
    grid of word pairs, FileNotFoundError for none."""
    model, tokenizer = load_pair_model(path, trust_remote_code=trust_remote_code)
    if not isinstance(model, CoupledLstmForSequenceClassification):
        raise InputError(
            f"{path} is a {model.config.model_type}; only a coupled_lstm has a grid of word pairs to show"
        )
    return model, tokenizer


@torch.inference_mode()
def read_grids(
    model: CoupledLstmForSequenceClassification,
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[tuple[str, str]],
) -> list[PairGrid]:
    """Run a batch of pairs of texts through the blocks."""
    encoded = tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt", verbose=False).to(
        model.device
    )
    grids = model.model(**encoded).last_hidden_state
    sides = []
    for side in split_pair(**encoded):
        rows = zip(side.input_ids.tolist(), side.lengths.tolist(), strict=True)
        sides.append([cast(list[str], tokenizer.convert_ids_to_tokens(ids[:length])) for ids, length in rows])
    return [PairGrid(x, y, h[: len(x), : len(y)]) for x, y, h in zip(*sides, grids, strict=True)]


def most_exciting_pairs(
    model: CoupledLstmForSequenceClassification,
    tokenizer: PreTrainedTokenizerBase,
    pairs: Iterable[tuple[str, str]],
    *,
    top: int = 5,
    batch_size: int = 64,
) -> list[list[ExcitingPair]]:
    """For each unit of the last block the `top` pairs of words at which it is most active, the most exciting first.

    Each pair of words counts once, where it is most active. End marks do not count as words.
    """
    best: list[dict[tuple[str, str], float]] = [{} for _ in range(model.config.grid_size)]
    remaining = iter(pairs)
    while batch := list(islice(remaining, batch_size)):
        for grid in read_grids(model, tokenizer, batch):
            _note(best, grid, top, set(tokenizer.all_special_tokens))
        best = [dict(nlargest(top, found.items(), key=itemgetter(1))) for found in best]
    return [[ExcitingPair(value, *words) for words, value in found.items()] for found in best]


def _note(best: list[dict[tuple[str, str], float]], grid: PairGrid, top: int, marks: set[str]) -> None:
    """Add a grid's strongest word pairs to those of each unit."""
    places = [(i, j) for i, x in enumerate(grid.x) for j, y in enumerate(grid.y) if x not in marks and y not in marks]
    if not places:
        return
    words = [(grid.x[i], grid.y[j]) for i, j in places]
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(words))}
    # A word pair with several occurrences counts once, where it is most active.
    index = torch.tensor([numbers[pair] for pair in words], device=grid.h.device)
    h = grid.h[tuple(zip(*places, strict=True))]
    h = h.new_full((len(numbers), h.shape[1]), -torch.inf).scatter_reduce_(
        0, index.unsqueeze(1).expand_as(h), h, "amax"
    )
    values, chosen = (part.t().tolist() for part in h.topk(min(top, len(h)), dim=0))
    distinct = list(numbers)
    for found, unit_values, unit_chosen in zip(best, values, chosen, strict=True):
        for value, number in zip(unit_values, unit_chosen, strict=True):
            found[distinct[number]] = max(value, found.get(distinct[number], value))


def format_exciting_pairs(pairs: Sequence[Sequence[ExcitingPair]]) -> str:
    """Make the Markdown table of the paper: a unit a row, its pairs of words with their activations."""
    lines = ["| unit | word pairs, most exciting first |", "|---:|---|"]
    for unit, found in enumerate(pairs):
        cells = (f"({_escape(pair.x)}, {_escape(pair.y)}) {pair.activation:.2f}" for pair in found)
        lines.append(f"| {unit} | {', '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _escape(word: str) -> str:
    return "".join("\\" + character if character in "\\|*_`<>[]" else character for character in word)


def choose_unit(grid: PairGrid) -> int:
    """The unit whose activations have the widest range over two sentences."""
    return int((grid.h.amax((0, 1)) - grid.h.amin((0, 1))).argmax())


@in_style
def plot_unit(grid: PairGrid, path: str | os.PathLike, unit: int | None = None) -> int:
    """Draw one unit's activations over the word pairs of two sentences, as the paper's pictures do.

    Args:
        grid: From `read_grids`.
        path: The PNG file to write.
        unit: Which unit; None for the one with the widest range over these sentences.

    Returns:
        The unit that was drawn.

    Raises:
        InputError: The unit does not exist.
    """
    unit = choose_unit(grid) if unit is None else unit
    if not 0 <= unit < grid.h.shape[-1]:
        raise InputError(f"there is no unit {unit}; the model has units 0 to {grid.h.shape[-1] - 1}")
    margins = (0.1 * max(map(len, words)) for words in (grid.x, grid.y))
    cells = 0.42 * len(grid.y), 0.34 * len(grid.x)
    width, height = (1.5 + margin + size for margin, size in zip(margins, cells, strict=True))
    figure = new_figure(width, height)
    axes = figure.subplots()
    largest = grid.h[..., unit].abs().max().item() or 1.0
    image = axes.imshow(grid.h[..., unit].tolist(), vmin=-largest, vmax=largest)
    axes.set_xticks(range(len(grid.y)), grid.y, rotation=60, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(grid.x)), grid.x, parse_math=False)
    axes.set_title(f"unit {unit}")
    figure.colorbar(image, shrink=0.8)
    save_figure(figure, path)
    return unit
