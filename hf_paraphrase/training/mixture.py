"""Several corpora in one training."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from datasets import Dataset, DatasetDict, concatenate_datasets

from ..common.errors import InputError
from ..datasets import load_dataset
from ..datasets.card import describe_corpus
from ..datasets.loading import find_builder, list_datasets, no_progress_bars
from .arguments import MixedCorpus, TrainingConfig
from .batching import EpochDraw, share_out

logger = logging.getLogger(__name__)


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
    loaded = [_load(corpus, folder) for corpus in corpora]
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


def _load(corpus: MixedCorpus, folder: str | os.PathLike | None) -> dict[str, Dataset]:
    """Its splits; InputError where it has no training pairs."""
    path = corpus.dataset
    data_dir: str | Path | None = corpus.data_dir
    if folder is not None and path in list_datasets():
        data_dir = Path(folder).expanduser() / (data_dir or "")
    elif folder is not None and (Path(folder).expanduser() / path).exists():
        path = str(Path(folder).expanduser() / path)
    splits = load_dataset(path, name=corpus.dataset_name, data_dir=data_dir, **corpus.dataset_kwargs)
    for split in ("train", "validation"):
        columns = splits[split].column_names if split in splits else []
        for column in ("source", "target"):
            if column not in columns:
                raise InputError(f"`mixture`: {corpus.title} has no column {column} in a split {split}")
    return dict(splits)


def _licence_of(corpus: MixedCorpus) -> str:
    """The given one, its builder's, or a note that none is recorded."""
    if corpus.licence is not None:
        return corpus.licence
    if corpus.dataset not in list_datasets() or find_builder(corpus.dataset).private:
        return "not recorded"
    return describe_corpus(find_builder(corpus.dataset))["Licence"].replace("\n", " ").rstrip(".")


def make_draw(training: TrainingConfig, encoded: Dataset) -> EpochDraw | None:
    """What draws the rows of every epoch from a train split; None where an epoch has all rows.

    Raises:
        InputError: None of a corpus's rows could be used.
    """
    if not training.drawn_by:
        return None
    columns = {name: np.asarray(encoded.with_format("numpy")[name][:]) for name in training.drawn_by}
    for number, corpus in enumerate(training.corpora if training.mixture else ()):
        if number not in columns["corpus"]:
            raise InputError(
                f"`mixture`: {corpus.title} has no row left to train on; leave it out, or drop fewer rows"
            )
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
            "licence": _licence_of(corpus),
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
