"""A paper: citation, card texts for its models, and reported figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .table import Table

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["ArchitectureNotes", "Paper", "PaperRow", "describe_paraphraser"]


class PaperRow(NamedTuple):
    """One row of a paper's table.

    Attributes:
        model: The paper, and which of its models.
        num_beams: How it decoded; None where the paper does not say.
        scores: By the names that `metrics.score_table` gives them, in its units.
    """

    model: str
    num_beams: int | None
    scores: dict[str, float]


@dataclass(frozen=True)
class ArchitectureNotes:
    """Card texts for an architecture.

    Args:
        summary: A one-clause description, with config fields in braces.
        use: What it is for.
        misuse: Out-of-scope uses.
        failures: What goes wrong with every model of this kind.
        traits: Descriptions of optional features, by config field.
    """

    summary: str
    use: str
    misuse: str
    failures: tuple[str, ...]
    traits: Mapping[str, str] = field(default_factory=dict)

    def summarise(self, config: Mapping[str, Any]) -> str:
        """The summary of a model with this configuration."""
        traits = [text for name, text in self.traits.items() if config.get(name)]
        return self.summary.format(**config) + (f" with {' and '.join(traits)}" if traits else "")


def describe_paraphraser(summary: str, **traits: str) -> ArchitectureNotes:
    """The notes on an architecture that rewords sentences; they differ in `summary` and `traits` alone."""
    return ArchitectureNotes(
        summary,
        "to reword sentences of the kind it was trained on, for study, for data augmentation under a person's eye, "
        "and as a baseline",
        "text of another kind or language, which comes back in the manner of the training data, and any use in which "
        "a changed meaning does harm",
        (
            "It keeps to what is frequent: rare things, names and numbers may turn into common ones.",
            "It may add, drop or contradict what the source says; nothing checks that the meaning stays.",
            "Words outside its vocabulary are not written, and all look alike to it when it reads them.",
        ),
        traits,
    )


def _no_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    return []


@dataclass(frozen=True)
class Paper:
    """A paper.

    Args:
        name: Author and year.
        citation: BibTeX.
        architectures: Card texts of its architectures, by `model_type`.
        find_rows: Of the configuration of a model and a corpus name, or None where that is unknown: the rows to print
            beside the model's scores.
        tables: Those that `hf-paraphrase reproduce` makes again.
    """

    name: str
    citation: str
    architectures: Mapping[str, ArchitectureNotes] = field(default_factory=dict)
    find_rows: Callable[[PreTrainedConfig, str | None], list[PaperRow]] = _no_rows
    tables: tuple[Table, ...] = ()
