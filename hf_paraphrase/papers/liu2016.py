from __future__ import annotations

from typing import TYPE_CHECKING

from .paper import ArchitectureNotes, Paper, PaperRow

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["PAPER"]

NAME = "Liu et al. 2016"


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    if dataset != "snli":
        return []
    # The one figure of its table that our source of the paper has.
    return [PaperRow(f"{NAME}, four stacked TC-LSTMs, 190k parameters", None, {"accuracy": 0.851})]


def _describe_matcher(summary: str) -> ArchitectureNotes:
    return ArchitectureNotes(
        summary,
        "to label or rank pairs of sentences of the kind it was trained on, for study and as a baseline",
        "pairs of another kind or language, and decisions about people",
        (
            "It goes by the words it knows: pairs that turn on a rare word, a number or a negation are easily "
            "misjudged.",
            "It has learnt its labels' frequencies with them: on text of another origin its scores are not "
            "probabilities.",
        ),
    )


PAPER = Paper(
    NAME,
    """@inproceedings{liu-etal-2016-modelling,
  title = {Modelling Interaction of Sentence Pair with Coupled-{LSTM}s},
  author = {Liu, Pengfei and Qiu, Xipeng and Zhou, Yaqian and Chen, Jifan and Huang, Xuanjing},
  booktitle = {Proceedings of EMNLP 2016},
  year = {2016}
}""",
    {
        "coupled_lstm": _describe_matcher(
            "a grid of {coupling}ly coupled LSTMs of {hidden_size} units (blocks: {num_blocks}, directions: "
            "{num_directions}), which reads two sentences together, word against word",
        ),
        "pair_lstm": _describe_matcher(
            "a reader of two sentences, of the kind `{encoder}` with {hidden_size} units, a baseline of the paper",
        ),
    },
    _find_rows,
)
