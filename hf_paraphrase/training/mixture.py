"""Several corpora in one training."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from datasets import Dataset, DatasetDict, concatenate_datasets

from ..common.fields import Options, option
from ..datasets import load_dataset
from ..datasets.card import describe_corpus
from ..datasets.loading import find_builder, list_datasets, no_progress_bars
from ..errors import InputError
from .batching import EpochDraw, share_out

if TYPE_CHECKING:
    from .arguments import TrainingConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MixedCorpus(Options):
    """An entry of `mixture`: a corpus, and how much of it is learnt."""

    dataset: str = option("As in a recipe with one corpus, as the next two are.", "")
    dataset_name: str | None = option("Configuration.", None)
    dataset_kwargs: dict[str, Any] = option("Relative `data_files` start at the folder.", factory=dict)
    data_dir: str | None = option("Folder; a relative one starts at the `data_dir` of recipe or command.", None)
    share: float | None = option(
        "Share of every epoch and of the validation rows, relative to the others'; without shares, sizes count.",
        None,
        above=0,
    )
    name: str | None = option("What log and card call it; by default the dataset and its configuration.", None)
    licence: str | None = option("For log and card, where its builder does not know it.", None)
    min_cosine: float | None = option("Overrides the recipe's.", None, least=-1, most=1)

    def __post_init__(self):
        super().__post_init__()
        if not self.dataset:
            raise InputError("the field `dataset` is missing; name the corpus")
        if self.dataset_kwargs.get("streaming"):
            raise InputError("`dataset_kwargs`: shares are of all rows; leave `streaming` out")

    @property
    def title(self) -> str:
        """What it is called."""
        return self.name or "/".join(filter(None, (self.dataset, self.dataset_name)))

    @property
    def terms(self) -> str:
        """Its licence: the given one, its builder's, or a note that none is recorded."""
        if self.licence is not None:
            return self.licence
        if self.dataset not in list_datasets() or find_builder(self.dataset).private:
            return "not recorded"
        return describe_corpus(find_builder(self.dataset))["Licence"].replace("\n", " ").rstrip(".")

    def load(self, folder: str | os.PathLike | None) -> dict[str, Dataset]:
        """Read its splits.

        Raises:
            InputError: It has no training pairs.
        """
        path = self.dataset
        data_dir: str | Path | None = self.data_dir
        if folder is not None and path in list_datasets():
            data_dir = Path(folder).expanduser() / (data_dir or "")
        elif folder is not None and (Path(folder).expanduser() / path).exists():
            path = str(Path(folder).expanduser() / path)
        splits = load_dataset(path, name=self.dataset_name, data_dir=data_dir, **self.dataset_kwargs)
        for split in ("train", "validation"):
            columns = splits[split].column_names if split in splits else []
            for column in ("source", "target"):
                if column not in columns:
                    raise InputError(f"`mixture`: {self.title} has no column {column} in a split {split}")
        return dict(splits)


def read_mixture(entries: Sequence[dict[str, Any]]) -> list[MixedCorpus]:
    """Read and check the field `mixture`.

    Raises:
        InputError: With the number of the entry, from 1, and its field.
    """
    corpora = [MixedCorpus.from_dict(entry, f"`mixture`, entry {number}") for number, entry in enumerate(entries, 1)]
    if len({corpus.share is None for corpus in corpora}) > 1:
        number = next(number for number, corpus in enumerate(corpora, 1) if corpus.share is None)
        raise InputError(f"`mixture`, entry {number}: `share` is missing; give every corpus one, or none")
    titles = [corpus.title for corpus in corpora]
    twice = next((number for number, title in enumerate(titles, 1) if title in titles[: number - 1]), None)
    if twice is not None:
        raise InputError(f"`mixture`, entry {twice}: {titles[twice - 1]} is there already; set `name`")
    return corpora


def load_mixture(
    corpora: Sequence[MixedCorpus],
    folder: str | os.PathLike | None,
    seed: int,
    select: Callable[[Dataset, MixedCorpus], Dataset] = lambda rows, _: rows,
) -> DatasetDict:
    """Read several corpora as one; none of the sentences of a validation or test split is trained on.

    The whole group of such a sentence is left out.

    Args:
        select: Leaves rows out of a corpus's split.

    Returns:
        `train`, with all rows, and `validation`, mixed by share, no row twice; `source`, `target`, `group`, which no
        two corpora share, and `corpus`, the place in `corpora`.
    """
    loaded = [corpus.load(folder) for corpus in corpora]
    tested = sentences_of(splits["test"] for splits in loaded if "test" in splits)
    held_out = tested | sentences_of(splits["validation"] for splits in loaded)
    mixed: dict[str, list[Dataset]] = {"train": [], "validation": []}
    next_group = 0
    for place, (corpus, splits) in enumerate(zip(corpora, loaded, strict=True)):
        for split, others in (("train", held_out), ("validation", tested)):
            rows = _leave_out(splits[split], others, f"{corpus.title}, {split}")
            rows = select(rows, corpus)
            if not len(rows):
                raise InputError(f"`mixture`: no row is left of the split {split} of {corpus.title}")
            # A row without a group is its own.
            groups = np.asarray(rows["group"]) if "group" in rows.column_names else np.arange(len(rows))
            numbers = np.unique(groups, return_inverse=True)[1] + next_group
            next_group = numbers.max() + 1
            with no_progress_bars():
                rows = rows.select_columns(["source", "target"]).add_column("group", numbers)
                mixed[split].append(rows.add_column("corpus", np.full(len(rows), place)))
    sizes = np.array(list(map(len, mixed["validation"])))
    weights = np.array([one.share or size for one, size in zip(corpora, sizes, strict=True)], dtype=float)
    weights /= weights.sum()
    draw = np.random.default_rng((seed, 0, 4))
    for place, size in enumerate(share_out(int(min(sizes / weights)), weights)):
        chosen = np.sort(draw.permutation(sizes[place])[:size])
        mixed["validation"][place] = mixed["validation"][place].select(chosen)
    return DatasetDict({split: concatenate_datasets(parts) for split, parts in mixed.items()})


def make_draw(training: TrainingConfig, encoded: Dataset) -> EpochDraw | None:
    """What draws the rows of every epoch from a train split; None where an epoch has all rows."""
    if not training.drawn_by:
        return None
    columns = {name: np.asarray(encoded.with_format("numpy")[name][:]) for name in training.drawn_by}
    shares = [corpus.share for corpus in training.corpora]
    given = [share for share in shares if share is not None]
    has_shares = shares and len(given) == len(shares)
    return EpochDraw(
        columns["group"],
        columns.get("corpus"),
        shares=np.array(given) / sum(given) if has_shares else None,
        pairs_per_group=training.pairs_per_group,
        seed=training.seed,
    )


def first_rows(rows: Dataset, limit: int) -> np.ndarray:
    """The indices of the first rows; in a mixture those of each corpus, in proportion to its rows."""
    if "corpus" not in rows.column_names:
        return np.arange(min(limit, len(rows)))
    sizes = np.bincount(rows.with_format("numpy")["corpus"][:])
    counts = np.minimum(share_out(min(limit, len(rows)), sizes / len(rows)), sizes)
    starts = np.cumsum(sizes) - sizes
    return np.concatenate([start + np.arange(count) for start, count in zip(starts, counts, strict=True)])


def describe_mixture(training: TrainingConfig, splits: Mapping[str, Dataset]) -> list[dict[str, Any]]:
    """Metadata of each corpus of a mixture, given its encoded `train` and `validation`.

    They are `name`, `dataset`, `licence`, `train_pairs`, `validation_pairs`, `pairs_per_epoch` and `share`, the part
    of an epoch's pairs that are its.
    """
    if not training.mixture:
        return []
    drawn = cast(EpochDraw, make_draw(training, splits["train"])).sizes
    found = {
        split: np.bincount(rows.with_format("numpy")["corpus"][:], minlength=len(drawn)).tolist()
        for split, rows in splits.items()
    }
    return [
        {
            "name": corpus.title,
            "dataset": corpus.dataset,
            "licence": corpus.terms,
            "train_pairs": found["train"][place],
            "validation_pairs": found["validation"][place],
            "pairs_per_epoch": int(drawn[place]),
            "share": float(drawn[place] / drawn.sum()),
        }
        for place, corpus in enumerate(training.corpora)
    ]


def sentences_of(splits: Iterable[Dataset]) -> set[str]:
    """All sentences of some splits, casefolded."""
    found: set[str] = set()
    for rows in splits:
        for name in {"source", "target"} & set(rows.column_names):
            found.update(map(str.casefold, rows[name]))
        if "references" in rows.column_names:
            found.update(text.casefold() for texts in rows["references"] for text in texts)
    return found


def _leave_out(rows: Dataset, held_out: set[str], name: str) -> Dataset:
    """Drop the groups (or, without groups, the rows) that contain one of these sentences."""
    sides = (rows["source"], rows["target"])
    shared = np.array([not held_out.isdisjoint(map(str.casefold, pair)) for pair in zip(*sides, strict=True)], bool)
    if "group" in rows.column_names:
        groups = np.asarray(rows["group"])
        shared = np.isin(groups, groups[shared])
    if shared.any():
        logger.warning("%s: left out %d of %d rows, which other splits share", name, shared.sum(), len(rows))
    return rows.select(np.flatnonzero(~shared))
