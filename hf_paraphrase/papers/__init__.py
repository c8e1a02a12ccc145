"""The papers, a file each: citation, card texts for the models, and published figures; and tables to make again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .paper import ArchitectureNotes, Paper, PaperRow, load_papers

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = [
    "ArchitectureNotes",
    "Paper",
    "PaperRow",
    "find_compared_rows",
    "find_matching_rows",
    "find_paper",
    "find_paper_rows",
    "load_papers",
]


def find_paper(model_type: str) -> Paper | None:
    """The paper that an architecture is from; None where it is from none of ours."""
    return next((paper for paper in load_papers() if model_type in paper.architectures), None)


def find_paper_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The rows of a paper to compare a model with: same architecture and depth, any width; None is an unknown
    corpus."""
    paper = find_paper(config.model_type)
    return paper.find_rows(config, dataset) if paper else []


def find_matching_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The published rows to compare a model of sentence pairs with; scores are 0 to 1; None is an unknown corpus."""
    return _find_named("Lan et al. 2017").find_rows(config, dataset) + find_paper_rows(config, dataset)


def find_compared_rows(dataset: str | None) -> list[PaperRow]:
    """The rows of Table 2 of Kazemnejad et al. 2020, FSET last, all on another split than ours; "as reported" marks
    what that paper took over from the papers of the systems."""
    return _find_named("Kazemnejad et al. 2020").find_compared_rows(dataset)


def _find_named(name: str) -> Paper:
    return next(paper for paper in load_papers() if paper.name == name)
