"""The record of an evaluation: one format for all models, read by tables, cards and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin, get_type_hints

from ..common.errors import InputError
from ..common.files import parse_json, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..papers import PaperRow

# Raised when a file of before can no longer be read.
SCHEMA = 1
_kinds_of = cache(get_type_hints)


@dataclass(frozen=True)
class Score:
    """A figure."""

    metric: str  # name of the score
    score: float  # in the units of `metrics.score_table`
    low: float | None = None  # lower bound of its 95% interval; None if there is none, as for a paper's figures
    high: float | None = None  # upper bound of it
    signature: str | None = None  # what was computed
    selection_variance: float | None = None  # variance due to test-set selection
    # Of the difference from the system that a comparison tests against, before any correction.
    p_value: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lower and the upper bound."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def margin(self) -> float | None:
        """Half of the interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def format(self, digits: int) -> str:
        """The score with half of its interval, as in `31.2 ± 0.8`."""
        interval = "" if self.margin is None else f" ± {self.margin:.{digits}f}"
        return f"{self.score:.{digits}f}{interval}"


@dataclass(frozen=True)
class Data:
    """The rows of an evaluation, as `load_dataset` spells where they come from."""

    path: str | None = None  # of the corpus; None where nobody said
    name: str | None = None  # of its configuration
    kwargs: dict[str, Any] = field(default_factory=dict)  # of its builder
    max_samples: int | None = None  # how many rows were asked for at most
    sample_seed: int | None = None  # by which they were drawn; None for the first ones
    split: str = "test"  # its name
    rows: int = 0  # how many were evaluated
    counts: dict[str, int] = field(default_factory=dict)  # what else was counted in them

    @property
    def label(self) -> str:
        """For the text below a table."""
        name = " ".join(part for part in (self.path, self.name) if part) or "data"
        drawn = f", drawn by seed {self.sample_seed}" if self.sample_seed is not None else ""
        return f"{name}, split {self.split}, {self.rows:,} rows{drawn}"


@dataclass(frozen=True)
class Model:
    """What is known of a model."""

    name: str  # where it was loaded from
    model_type: str  # its architecture
    num_parameters: int  # how many weights it has


@dataclass(frozen=True)
class Decoding:
    """How outputs are found, and how one of several is chosen."""

    method: str = "beam"  # a key of `DECODINGS`, or "sample"
    num_beams: int = 1  # width of the search; 1 is greedy
    num_neighbors: int | None = None  # retrieved pairs a row; None for a model that edits by none
    allow_own_pair: bool | None = None  # whether pairs that share a sentence with their row are among them
    num_candidates: int | None = None  # outputs to choose from
    select: str | None = None  # how, as `generate_several` takes it
    matcher: str | None = None  # the model that "matcher" asks
    num_return_sequences: int = 1  # outputs a row; by pairs, 1 is for one of each
    # Further generation settings, from the generation config or overriding it.
    generate_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def num_outputs(self) -> int:
        """Outputs of a row that are kept."""
        return max(self.num_neighbors or 1, self.num_return_sequences)

    @property
    def rule(self) -> str | None:
        """How one of several candidates is chosen; None where there is one only."""
        return f"{self.select} of {self.num_candidates}" if self.num_candidates else None

    @property
    def search(self) -> str:
        """The method, with its width where it has one."""
        return self.method if self.method == "sample" else f"{self.method} {self.num_beams}"

    @property
    def label(self) -> str:
        """For a line of a table."""
        pairs = f", {self.num_neighbors} pair{'s' * (self.num_neighbors > 1)} a row" if self.num_neighbors else ""
        return f"{self.search}{pairs}" + (f", by {self.rule}" if self.rule else "")

    @property
    def identifier(self) -> str:
        """For the name of a score."""
        return f"{self.method}{self.num_beams}" + (f"_pairs{self.num_neighbors}" if self.num_neighbors else "")


@dataclass(frozen=True)
class Speed:
    """How fast outputs came."""

    seconds: float  # of the whole split
    per_second: float  # how many of a `unit` a second
    unit: str  # "sentences", "words" or "pairs"


@dataclass(frozen=True)
class Group:
    """Rows that are scored apart."""

    column: str  # by which they are told apart
    value: Any  # that they have there
    rows: int  # how many
    scores: tuple[Score, ...]  # of these alone

    @property
    def label(self) -> str:
        return f"{self.column}={self.value}"


@dataclass(frozen=True)
class Entry:
    """What one system was found, or is reported, to do in one way of decoding."""

    system: str  # its name
    role: Literal["model", "baseline", "paper"]  # whether it is a model, a baseline or a paper's figure
    scores: tuple[Score, ...]  # of all rows
    model: Model | None = None  # what is known of the model
    decoding: Decoding | None = None  # how it wrote; None where nothing is written
    groups: tuple[Group, ...] = ()  # scores of some of the rows
    diversity: tuple[Score, ...] = ()  # how unlike the outputs are, of a row or all of them
    candidate_diversity: tuple[Score, ...] = ()  # the same of the candidates that one was chosen from
    perplexity: float | None = None  # of the first references
    # What else was counted of its outputs or, as `num_parameters_without_embeddings`, of itself.
    counts: dict[str, int] = field(default_factory=dict)
    speed: Speed | None = None  # how fast it was
    objective: str | None = None  # the task of a language model: "next_sentence" or "autoencode"
    outputs: str | None = None  # name of the file beside this one that has the outputs
    training: dict[str, Any] = field(default_factory=dict)  # what its training took, where a comparison says so
    data: Data | None = None  # its rows, if they differ from the whole record's
    environment: dict[str, Any] = field(default_factory=dict)  # where it ran, if not where the whole record says

    def label(self, name: str | None = None) -> str:
        """The system, under another name if need be, and how it decoded."""
        return ", ".join(part for part in (name or self.system, self.decoding and self.decoding.label) if part)

    def find(self, metric: str) -> Score | None:
        """A score, or a measure of diversity, by its name."""
        found = (*self.scores, *self.diversity, *self.candidate_diversity)
        return next((score for score in found if score.metric == metric), None)

    def score_of(self, metric: str) -> Score:
        """A score that is there, by its name; raises KeyError for another one."""
        score = self.find(metric)
        if score is None:
            raise KeyError(metric)
        return score


@dataclass(frozen=True)
class Results:
    """An evaluation: what was scored, on which rows, where and when."""

    # What was evaluated.
    kind: Literal["paraphrases", "documents", "language_model", "matches", "comparison", "choices", "open_text"]
    data: Data  # the rows
    # The model in each of its decodings, baselines, and what papers report; or what is compared.
    entries: tuple[Entry, ...]
    environment: dict[str, Any] = field(default_factory=dict)  # seeds, sizes, device, versions, commit and date
    against: str | None = None  # in a comparison the system that the others are tested against

    def of(self, role: str) -> list[Entry]:
        """The entries of a role."""
        return [entry for entry in self.entries if entry.role == role]

    def find(self, system: str) -> Entry:
        """The first entry of a system."""
        return next(entry for entry in self.entries if entry.system == system)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without what is not known."""
        return {"schema": SCHEMA, **_to_json(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str | os.PathLike = "these results") -> Results:
        """Read what `to_dict` gave.

        Args:
            values: The values.
            source: What the message of an error calls them.

        Raises:
            InputError: They have another shape.
        """
        try:
            if values["schema"] != SCHEMA:
                raise ValueError(f"schema {values['schema']}")
            results = _from_json(cls, {name: value for name, value in values.items() if name != "schema"})
            if not results.of("model"):
                raise ValueError("no model")
            return results
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{source} is not an evaluation record of this version ({type(error).__name__}: {error}); "
                "evaluate again"
            ) from error

    def save(self, path: str | os.PathLike) -> None:
        """Write it as JSON; the folder is made if need be."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_json(Path(path), self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike) -> Results:
        """Read what `save` wrote; raises InputError, which names the file, for another shape."""
        return cls.from_dict(parse_json(Path(path).read_bytes(), str(path)), path)


def describe_data(data: Mapping[str, Any] | None, split: str, rows: int) -> Data:
    """What results say of the rows that an evaluator was given; raises InputError where `data` says what no field is
    for."""
    unknown = (data or {}).keys() - {one.name for one in fields(Data)}
    if unknown:
        raise InputError(f"`data`: no field {', '.join(sorted(unknown))}; arguments of the builder stand in `kwargs`")
    return Data(**{**(data or {}), "split": split, "rows": rows})


def describe_model(model: PreTrainedModel, scores: tuple[Score, ...] = (), **others: Any) -> Entry:
    """The entry of a model that was evaluated; `others` are more of its fields."""
    # Reports are read without a model, and so without torch.
    from ..generation.int8 import count_parameters

    known = Model(cast(str, model.name_or_path), model.config.model_type, count_parameters(model))
    return Entry(model.name_or_path or "this model", "model", scores, model=known, **others)


def describe_papers(rows: Iterable[PaperRow]) -> list[Entry]:
    """What papers report, as entries."""
    return [
        Entry(
            row.model,
            "paper",
            tuple(Score(metric, score) for metric, score in row.scores.items()),
            decoding=None if row.num_beams is None else Decoding(num_beams=row.num_beams),
        )
        for row in rows
    ]


def describe_commit(environment: Mapping[str, Any]) -> str:
    """The commit and the date of an evaluation."""
    return f"commit {(environment['commit'] or 'unknown')[:10]}, {environment['date'][:10]}"


def join_distinct(values: Iterable[object]) -> str:
    """Values with commas between them, each once."""
    return ", ".join(dict.fromkeys(map(str, values)))


def format_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, all columns but the first aligned right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def describe_retrieval(results: Results) -> list[str]:
    """Sentences that say of a model that edits by pairs which ones it got; none for another model."""
    entries = [entry for entry in results.of("model") if entry.decoding and entry.decoding.num_neighbors]
    if not entries:
        return []
    shared = entries[0].counts.get("rows_with_own_pair")
    share = "" if shared is None else f" (for {shared:,} of {results.data.rows:,} rows there are any)"
    decodings = [entry.decoding for entry in entries if entry.decoding]
    treated = "were allowed, the answer itself too" if decodings[0].allow_own_pair else "were left out"
    notes = [f"Pairs that share a row's source or reference{share} {treated}."]
    if len({decoding.num_neighbors for decoding in decodings}) > 1:
        notes.append(
            "One model with more or fewer pairs is not the K of Kazemnejad et al. 2020, appendix A.2, who train a "
            "model for each K (recipes fset-quora, fset-quora-k3, fset-quora-k5)."
        )
    return notes


def format_scores(results: Results, digits: int, *notes: str) -> str:
    """The scores as text: a heading, a line for each system, ours first, then notes and the scores' signatures."""
    metrics = [score.metric for score in results.entries[0].scores]
    table = [("", metrics)]
    for entry in results.entries:
        found = map(entry.find, metrics)
        table.append((entry.label(), ["-" if score is None else score.format(digits) for score in found]))
    label, widths = max(len(name) for name, _ in table), [max(15, len(metric)) for metric in metrics]
    data = results.data
    lines = [f"{data.path or 'data'}, split {data.split}, {data.rows:,} rows; ± half of the 95% interval"]
    for name, cells in table:
        padded = (f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{name:<{label}}" + "".join(padded))
    signatures = (f"{score.metric}: {score.signature}" for score in results.entries[0].scores)
    return "\n".join([*lines, *notes, *signatures])


def _to_json(value: Any) -> Any:
    """A part of a record, without fields that may be left out and are empty; what is not part of one as it is."""
    if isinstance(value, tuple):
        return [_to_json(one) for one in value]
    if not is_dataclass(value):
        return value
    found = {}
    for one in fields(value):
        part, needed = getattr(value, one.name), one.default is one.default_factory is MISSING
        if needed or part not in (None, (), {}):
            found[one.name] = _to_json(part)
    return found


def _from_json(kind: Any, value: Any) -> Any:
    """A value as the part of a record that it has to be."""
    arguments = get_args(kind)
    if isinstance(kind, UnionType):  # with None, which is never written
        return _from_json(arguments[0], value)
    if isinstance(kind, type) and is_dataclass(kind):
        kinds = _kinds_of(kind)
        return kind(**{name: _from_json(kinds[name], part) for name, part in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_from_json(arguments[0], one) for one in value)
    if get_origin(kind) is Literal:
        allowed = value in arguments
    elif kind is float:
        allowed = isinstance(value, int | float)
    else:
        allowed = kind is Any or isinstance(value, get_origin(kind) or kind)
    if not allowed:
        raise ValueError(f"{value!r:.80} is not {kind}")
    return value
