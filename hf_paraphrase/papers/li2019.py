from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .paper import Paper, PaperRow, describe_paraphraser

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Li et al. 2019"
# As Kazemnejad et al. 2020, Table 2, take it over.
QUORA = {"rouge2": 37.75, "rouge1": 63.73, "bleu_4": 25.03}


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    return [PaperRow(f"{NAME}, DNPG, another split", None, QUORA)] if dataset == "quora" else []


NOTES = describe_paraphraser(
    "a Transformer in two levels of {hidden_size} units, which rewrites phrases ({num_layers} layers) and the "
    "sentence's template ({sentence_layers} layers) apart from each other and can be told which to keep,",
    copy="words that the phrase level copies",
)
NOTES = replace(
    NOTES,
    failures=(
        *NOTES.failures[:2],
        "Words outside its vocabulary all look alike to it when it reads them, and it can copy them at best.",
        "What it takes for phrases and for the template is learnt: frequent words count as the template's.",
    ),
)

PAPER = Paper(
    NAME,
    {
        "dnpg": NOTES,
    },
    _find_rows,
)
