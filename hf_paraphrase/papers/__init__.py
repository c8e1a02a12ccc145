"""The papers, a YAML file each: citation, card texts for the models, published figures; and tables to make again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.fields import read_yaml

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class PaperRow(NamedTuple):
    """One row of a paper's table."""

    model: str  # the paper, and which of its models
    num_beams: int | None  # how it decoded; None where the paper does not say
    scores: dict[str, float]  # by the names that `metrics.score_table` gives them, in its units


@dataclass(frozen=True)
class ArchitectureNotes:
    """Card texts for an architecture; by default those of one that rewords sentences."""

    summary: str  # a one-clause description, with config fields in braces
    # What it is for.
    use: str = (
        "to reword sentences of the kind it was trained on, for study, for data augmentation under a person's eye, "
        "and as a baseline"
    )
    # Out-of-scope uses.
    misuse: str = (
        "text of another kind or language, which comes back in the manner of the training data, and any use in which "
        "a changed meaning does harm"
    )
    # What goes wrong with every model of this kind.
    failures: Sequence[str] = (
        "It keeps to what is frequent: rare things, names and numbers may turn into common ones.",
        "It may add, drop or contradict what the source says; nothing checks that the meaning stays.",
        "Words outside its vocabulary are not written, and all look alike to it when it reads them.",
    )
    traits: Mapping[str, str] = field(default_factory=dict)  # descriptions of optional features, by config field

    def summarise(self, config: Mapping[str, Any]) -> str:
        """The summary of a model with this configuration."""
        traits = [text for name, text in self.traits.items() if config.get(name)]
        return self.summary.format(**config) + (f" with {' and '.join(traits)}" if traits else "")


@dataclass(frozen=True)
class ReportedModel:
    """A model of a paper, and its figures on every corpus."""

    model: str  # which of its models
    # By corpus, in the order of the paper's `scores`, null where it has none; or several such by beam width.
    figures: Mapping[str, Any]
    model_type: str = "any"  # the architecture whose models it is printed beside; "none" where none is like it
    # What their configuration says; of true and false, whether it says anything.
    where: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""  # what is to be known of the figures beside one of our models
    compared: bool = True  # whether it is in the paper's comparison of systems

    def fits(self, config: PreTrainedConfig) -> bool:
        """Whether a model has its architecture and depth, at any width."""
        return self.model_type in ("any", config.model_type) and all(
            (bool(found) if isinstance(value, bool) else found) == value
            for value, found in ((value, getattr(config, name)) for name, value in self.where.items())
        )


@dataclass(frozen=True)
class Paper:
    """A paper."""

    name: str  # author and year
    citation: str  # BibTeX
    # Card texts of its architectures, by `model_type`.
    architectures: Mapping[str, ArchitectureNotes] = field(default_factory=dict)
    scores: Sequence[str] = ()  # that it reports
    rows: Sequence[ReportedModel] = ()  # of which models

    def find_rows(self, config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
        """The rows to print beside a model's scores on a corpus, None where that is unknown."""
        return [made for row in self.rows if row.fits(config) for made in self._make_rows(row, dataset, row.note)]

    def find_compared_rows(self, dataset: str | None) -> list[PaperRow]:
        """Its own comparison of systems on a corpus."""
        return [made for row in self.rows if row.compared for made in self._make_rows(row, dataset)]

    def _make_rows(self, row: ReportedModel, dataset: str | None, note: str = "") -> list[PaperRow]:
        if dataset is None or dataset not in row.figures:
            return []
        found, label = row.figures[dataset], ", ".join(filter(None, (self.name, row.model, note)))
        by_width = found if isinstance(found, Mapping) else {None: found}
        return [
            PaperRow(
                label, width, {name: one for name, one in zip(self.scores, values, strict=True) if one is not None}
            )
            for width, values in by_width.items()
        ]


@cache
def load_papers() -> tuple[Paper, ...]:
    """All papers, by year."""
    files = Path(__file__).parent.glob("*.yaml")
    return tuple(map(_load_paper, sorted(files, key=lambda file: (file.stem[-4:], file.stem))))


def _load_paper(file: Path) -> Paper:
    values = read_yaml(file)
    architectures = {name: ArchitectureNotes(**notes) for name, notes in values.pop("architectures", {}).items()}
    rows = [ReportedModel(**row) for row in values.pop("rows", [])]
    return Paper(**values, architectures=architectures, rows=rows)


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
