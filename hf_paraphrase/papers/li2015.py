from __future__ import annotations

from typing import TYPE_CHECKING

from .paper import ArchitectureNotes, Paper, PaperRow

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["PAPER"]

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
    scores = TABLE_3.get(dataset, {}).get((config.hierarchy, config.attention))
    if scores is None:
        return []
    name = {"none": "standard", "sentence": "hierarchical"}[config.hierarchy] + ", attention" * config.attention
    greedy = 1
    return [PaperRow(f"{NAME}, {name}", greedy, dict(zip(SCORES, scores, strict=True)))]


PAPER = Paper(
    NAME,
    """@inproceedings{li-etal-2015-hierarchical,
  title = {A Hierarchical Neural Autoencoder for Paragraphs and Documents},
  author = {Li, Jiwei and Luong, Minh-Thang and Jurafsky, Dan},
  booktitle = {Proceedings of ACL 2015},
  year = {2015}
}""",
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
)
