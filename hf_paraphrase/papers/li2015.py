from __future__ import annotations

from typing import TYPE_CHECKING

from .paper import ArchitectureNotes, Paper, PaperRow
from .table import Claim, Measurement, Settings, Table, Trained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Li et al. 2015"
# Table 3: corpus -> (hierarchy, attention) -> BLEU, ROUGE-1, ROUGE-2 and coherence L.
SCORES = ("bleu_4", "rouge1_recall", "rouge2_recall", "coherence")
TABLE_3 = {
    "hotel_reviews": {
        ("none", False): (24.1, 57.1, 30.2, 1.92),
        ("sentence", False): (26.7, 59.0, 33.0, 1.71),
        ("sentence", True): (28.5, 62.4, 35.5, 1.57),
    },
    "wikipedia_paragraphs": {
        ("none", False): (17.8, 50.2, 22.8, 2.75),
        ("sentence", False): (20.2, 52.9, 25.0, 2.30),
        ("sentence", True): (22.0, 54.4, 29.1, 2.04),
    },
}


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    scores = TABLE_3.get(dataset or "", {}).get((config.hierarchy, config.attention))
    if scores is None:
        return []
    name = {"none": "standard", "sentence": "hierarchical"}[config.hierarchy] + ", attention" * config.attention
    greedy = 1
    return [PaperRow(f"{NAME}, {name}", greedy, dict(zip(SCORES, scores, strict=True)))]


SYSTEMS = ("standard", "hierarchical", "attention")


def _make_table() -> Table:
    # Longer documents than the small recipes have, on which a hierarchy can show; the loss is a document's, as there.
    fields = {
        "dataset_kwargs": {"min_words": 50, "max_words": 120, "vocabulary_size": 8000, "max_unknown": 0.04},
        "max_source_length": 150,
        "vocab_size": 8000,
        "loss_normalization": "rows",
    }
    orders = (("attention", "hierarchical"), ("hierarchical", "standard"))
    metrics = ("bleu_4", "rouge1_recall", "rouge2_recall", "coherence")
    return Table(
        name="li-hotel-reviews",
        title=f"{NAME}, Table 3, hotel reviews",
        settings={
            "small": Settings(
                {name: Trained(f"{name}-autoencoder-hotel-reviews-small", fields) for name in SYSTEMS}, minutes=60
            ),
            "paper": Settings({name: Trained(f"{name}-autoencoder-hotel-reviews") for name in SYSTEMS}),
        },
        measurements=(Measurement(claims=tuple(Claim(*order, metric) for metric in metrics for order in orders)),),
        max_samples=1000,
        cards="hierarchical-autoencoder-hotel-reviews-small",
    )


PAPER = Paper(
    NAME,
    {
        "hierarchical_autoencoder": ArchitectureNotes(
            "an LSTM autoencoder of whole paragraphs, {num_layers} + {num_layers} layers of {hidden_size} units, with "
            "the hierarchy `{hierarchy}`",
            "to turn a paragraph of the kind it was trained on into one vector and back, for study",
            "texts that have to come back as they were: what is rebuilt differs from the source",
            (
                "What it rebuilds drifts from the source with every sentence; names and numbers change first.",
                "Words outside its vocabulary are not written, and all look alike to it when it reads them.",
            ),
            {"attention": "attention"},
        ),
    },
    _find_rows,
    (_make_table(),),
)
