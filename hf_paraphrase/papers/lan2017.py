from __future__ import annotations

from typing import TYPE_CHECKING

from .paper import Paper, PaperRow

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Lan et al. 2017"
# The largest F1 on the whole test file.
MAX_F1 = {"edit distance": 0.526, "LEX-WMF": 0.693, "DeepPairwiseWord": 0.749}


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    if dataset != "twitter_url":
        return []
    return [PaperRow(f"{NAME}, {model}", None, {"max_f1": max_f1}) for model, max_f1 in MAX_F1.items()]


# It has a corpus and no architecture of ours.
PAPER = Paper(
    NAME,
    find_rows=_find_rows,
)
