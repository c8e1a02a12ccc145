"""The papers, one module each: citation, card texts for the models, and published figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import kazemnejad2020, kim2019, lan2017, li2015, li2019, liu2016, prakash2016, traynor2018, vaswani2017
from .kazemnejad2020 import find_compared_rows
from .paper import ArchitectureNotes, Paper, PaperRow

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = [
    "PAPERS",
    "ArchitectureNotes",
    "Paper",
    "PaperRow",
    "find_compared_rows",
    "find_matching_rows",
    "find_paper",
    "find_paper_rows",
]

PAPERS = tuple(
    paper.PAPER
    for paper in (li2015, liu2016, prakash2016, lan2017, vaswani2017, traynor2018, kazemnejad2020, li2019, kim2019)
)


def find_paper(model_type: str) -> Paper | None:
    """The paper that an architecture is from; None where it is from none of ours."""
    return next((paper for paper in PAPERS if model_type in paper.architectures), None)


def find_paper_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The rows of a paper to compare a model with: same architecture and depth, any width; None is an unknown
    corpus."""
    paper = find_paper(config.model_type)
    return paper.find_rows(config, dataset) if paper else []


def find_matching_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The published rows to compare a model of sentence pairs with; scores are 0 to 1; None is an unknown corpus."""
    return lan2017.PAPER.find_rows(config, dataset) + find_paper_rows(config, dataset)
