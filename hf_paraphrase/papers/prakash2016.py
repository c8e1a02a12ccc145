from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .paper import Paper, PaperRow, describe_paraphraser
from .table import Claim, Measurement, Settings, Table, Trained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Prakash et al. 2016"
# Table 3: corpus -> (kind, layers) -> beam width -> BLEU, METEOR, embedding greedy, TER.
# All models have 512 units a layer.
SCORES = ("bleu_4", "meteor", "embedding_greedy", "ter")
TABLE_3: dict[str, dict[tuple[str | None, int], dict[int, tuple[float, ...]]]] = {
    "ppdb": {
        ("sequence to sequence", 2): {5: (12.5, 21.3, 32.55, 82.9), 10: (12.9, 20.5, 32.65, 83.0)},
        ("attention", 2): {5: (13.0, 21.2, 32.95, 82.2), 10: (13.8, 20.6, 32.29, 81.9)},
        ("sequence to sequence", 4): {5: (18.3, 23.5, 33.18, 82.7), 10: (18.8, 23.5, 33.78, 82.1)},
        ("bi-directional", 4): {5: (19.2, 23.1, 34.39, 77.5), 10: (19.7, 23.2, 34.56, 84.4)},
        ("attention", 4): {5: (19.9, 23.2, 34.71, 83.8), 10: (20.2, 22.9, 34.90, 77.1)},
        ("residual", 4): {5: (20.3, 23.1, 34.77, 77.1), 10: (21.2, 23.0, 34.78, 77.0)},
    },
    "wikianswers": {
        ("sequence to sequence", 2): {5: (19.2, 26.1, 62.65, 35.1), 10: (19.5, 26.2, 62.95, 34.8)},
        ("attention", 2): {5: (21.2, 22.9, 63.22, 37.1), 10: (21.2, 23.0, 63.50, 37.0)},
        ("sequence to sequence", 4): {5: (33.2, 29.6, 73.17, 28.3), 10: (33.5, 29.6, 73.19, 28.3)},
        ("bi-directional", 4): {5: (34.0, 30.8, 73.80, 27.3), 10: (34.3, 30.7, 73.95, 27.0)},
        ("attention", 4): {5: (34.7, 31.2, 73.45, 27.1), 10: (34.9, 31.2, 73.50, 27.1)},
        ("residual", 4): {5: (37.0, 32.2, 75.13, 27.0), 10: (37.2, 32.2, 75.19, 26.8)},
    },
    "mscoco": {
        ("sequence to sequence", 2): {5: (15.9, 14.8, 54.11, 66.9), 10: (16.5, 15.4, 55.81, 67.1)},
        ("attention", 2): {5: (17.5, 16.6, 58.92, 63.9), 10: (18.6, 16.8, 59.26, 63.0)},
        ("sequence to sequence", 4): {5: (28.2, 23.0, 67.22, 56.7), 10: (28.9, 23.2, 67.10, 56.3)},
        ("bi-directional", 4): {5: (32.6, 24.5, 68.62, 53.8), 10: (32.8, 24.9, 68.91, 53.7)},
        ("attention", 4): {5: (33.1, 25.4, 69.10, 54.3), 10: (33.4, 25.2, 69.34, 53.8)},
        ("residual", 4): {5: (36.7, 27.3, 69.69, 52.3), 10: (37.0, 27.0, 69.21, 51.6)},
    },
}


# Rows of the table -> the recipe of the paper, and how the small one differs from residual-lstm-mscoco-small.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "sequence to sequence, 2 layers": (
        "seq2seq-lstm-mscoco-2layer",
        {"num_layers": 2, "residual_interval": 0, "attention": None},
    ),
    "attention, 2 layers": ("attention-lstm-mscoco-2layer", {"num_layers": 2, "residual_interval": 0}),
    "sequence to sequence": ("seq2seq-lstm-mscoco", {"residual_interval": 0, "attention": None}),
    "bi-directional": (
        "bidirectional-lstm-mscoco",
        {"residual_interval": 0, "attention": None, "bidirectional_encoder": True},
    ),
    "attention": ("attention-lstm-mscoco", {"residual_interval": 0}),
    "residual": ("residual-lstm-mscoco", {"attention": None}),
}


def _make_table() -> Table:
    pairs = [
        ("sequence to sequence", "sequence to sequence, 2 layers"),
        ("attention", "attention, 2 layers"),
        *(("residual", other) for other in ("sequence to sequence", "bi-directional", "attention")),
    ]
    return Table(
        name="prakash-mscoco",
        title=f"{NAME}, Table 3, MSCOCO",
        settings={
            "small": Settings(
                {name: Trained("residual-lstm-mscoco-small", fields) for name, (_, fields) in SYSTEMS.items()},
                minutes=40,
            ),
            "paper": Settings({name: Trained(recipe) for name, (recipe, _) in SYSTEMS.items()}),
        },
        measurements=(Measurement(claims=tuple(Claim(*pair, "bleu_4") for pair in pairs)),),
        metrics=("bleu", "meteor", "ter"),
        cards="residual-lstm-mscoco-small",
    )


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    kind, layers = _kind(config), config.num_layers
    figures = TABLE_3.get(dataset or "", {}).get((kind, layers), {})
    return [
        PaperRow(f"{NAME}, {layers}-layer {kind}, 512 units", num_beams, dict(zip(SCORES, scores, strict=True)))
        for num_beams, scores in figures.items()
    ]


def _kind(config: PreTrainedConfig) -> str | None:
    kinds = {
        (False, False, None): "sequence to sequence",
        (False, False, "additive"): "attention",
        (False, True, None): "bi-directional",
        (True, False, None): "residual",
        # The paper's residual model has no attention; models with attention are compared with the same row.
        (True, False, "additive"): "residual",
    }
    return kinds.get((config.residual_interval > 0, config.bidirectional_encoder, config.attention))


PAPER = Paper(
    NAME,
    {
        "residual_lstm": describe_paraphraser(
            "an LSTM encoder-decoder of {num_layers} layers of {hidden_size} units",
            residual_interval="residual connections",
            bidirectional_encoder="a bi-directional encoder",
            attention="attention",
        ),
    },
    _find_rows,
    (_make_table(),),
)
