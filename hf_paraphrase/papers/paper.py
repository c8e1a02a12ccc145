"""A paper: citation, card texts for its models, and reported figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .table import Table

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class PaperRow(NamedTuple):
    """One row of a paper's table."""

    model: str  # the paper, and which of its models
    num_beams: int | None  # how it decoded; None where the paper does not say
    scores: dict[str, float]  # by the names that `metrics.score_table` gives them, in its units


@dataclass(frozen=True)
class ArchitectureNotes:
    """Card texts for an architecture."""

    summary: str  # a one-clause description, with config fields in braces
    use: str  # what it is for
    misuse: str  # out-of-scope uses
    failures: tuple[str, ...]  # what goes wrong with every model of this kind
    traits: Mapping[str, str] = field(default_factory=dict)  # descriptions of optional features, by config field

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
    """A paper."""

    name: str  # author and year, as in the name of its file
    # Card texts of its architectures, by `model_type`.
    architectures: Mapping[str, ArchitectureNotes] = field(default_factory=dict)
    # Of the configuration of a model and a corpus name, or None where that is unknown: the rows to print beside the
    # model's scores.
    find_rows: Callable[[PreTrainedConfig, str | None], list[PaperRow]] = _no_rows
    tables: tuple[Table, ...] = ()  # those that `hf-paraphrase reproduce` makes again

    @property
    def citation(self) -> str:
        """Its BibTeX, from the file beside that of the paper: of Liu et al. 2016, `liu2016.bib`."""
        name = f"{self.name.split()[0].lower()}{self.name[-4:]}"
        return Path(__file__).with_name(f"{name}.bib").read_text(encoding="utf-8").strip()
