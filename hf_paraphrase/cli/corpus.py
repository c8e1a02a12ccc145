"""The corpus of a command: options that are spelt alike everywhere, as `load_dataset` spells its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .options import parse_pairs

if TYPE_CHECKING:
    import datasets

    from ..training.arguments import TrainingConfig
    from ..training.recipe import Recipe

__all__ = [
    "Corpus",
    "DataDir",
    "DataFiles",
    "DatasetKwargs",
    "DatasetName",
    "DatasetOption",
    "EvaluatedCorpus",
    "EvaluatedSplit",
    "MaxSamples",
    "SampleSeed",
    "TrainedCorpus",
    "choose_corpus",
    "find_training_config",
    "pick_split",
    "read_corpus",
    "read_evaluated_corpus",
    "take_rows",
]

SPLITS = ("train", "validation", "test")

DatasetOption = Annotated[
    str,
    typer.Option(
        help="Corpus, one of `hf-paraphrase datasets list` (`pairs` is your own); or owner/name of the Hub, a file or "
        "a folder that datasets reads."
    ),
]
TrainedCorpus = Annotated[
    str | None,
    typer.Option(
        help="Corpus, one of `hf-paraphrase datasets list`, or owner/name of the Hub, a file or a folder that "
        "datasets reads; in place of all that the recipe says of its own."
    ),
]
EvaluatedCorpus = Annotated[
    str | None,
    typer.Option(
        help="Corpus, one of `hf-paraphrase datasets list`, or owner/name of the Hub, a file or a folder that "
        "datasets reads.  [default: what the model was trained on]"
    ),
]
DatasetName = Annotated[str | None, typer.Option(help="Configuration of the corpus, if it has several.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the corpus's published files.  [default: downloaded, where their address is open]"),
]
DataFiles = Annotated[
    list[str] | None,
    typer.Option(metavar="[SPLIT=]FILE", help="File of the corpus `pairs`, for instance test=mine.csv; repeatable."),
]
DatasetKwargs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Argument of the corpus builder, or of what is no corpus, such as columns.source=question1; repeatable.",
    ),
]
EvaluatedSplit = Annotated[str, typer.Option(help="Split to evaluate on.")]
MaxSamples = Annotated[int | None, typer.Option(min=1, help="Only the first rows of the split.")]
SampleSeed = Annotated[
    int | None, typer.Option(help="Draw the rows of --max-samples at random by this seed, in place of the first.")
]


@dataclass(frozen=True)
class Corpus:
    """What `load_dataset` is asked for.

    Args:
        path: The corpus; None for the mixture of a recipe.
        name: Its configuration.
        data_dir: Folder with its files.
        kwargs: Further arguments, `data_files` among them.
    """

    path: str | None
    name: str | None
    data_dir: str | Path | None
    kwargs: dict[str, Any]

    @property
    def is_streamed(self) -> bool:
        """Whether the rows are to be made while they are read."""
        return bool(self.kwargs.get("streaming"))

    def stream(self) -> datasets.IterableDatasetDict:
        """All splits, whose rows are made while they are read."""
        from ..datasets import load_dataset

        return load_dataset(self.path, name=self.name, data_dir=self.data_dir, **self.kwargs)

    def load(self, split: str | None = None) -> datasets.DatasetDict | datasets.Dataset:
        """Read all splits, or one.

        Raises:
            InputError: They are to be streamed, which is for a look at them and for training.
        """
        from ..datasets import load_dataset

        if self.is_streamed:
            raise InputError(
                "--dataset-kwargs streaming=true is for `datasets preview` and `train`; here all rows are needed: "
                "streaming=false"
            )
        return load_dataset(self.path, name=self.name, data_dir=self.data_dir, split=split, **self.kwargs)

    def describe(self, **details: Any) -> dict[str, Any]:
        """What results say of the rows: where they come from, without the place on this machine, and `details`."""
        return {"path": self.path, "name": self.name, "kwargs": self.kwargs, **details}


def read_corpus(
    dataset: str | None,
    dataset_name: str | None,
    data_dir: Path | None,
    data_files: Iterable[str] | None,
    dataset_kwargs: Iterable[str] | None,
    trained_on: TrainingConfig | None = None,
) -> Corpus:
    """Read the options of a command.

    Args:
        dataset: `--dataset`; with it the other options say all there is to say, and `trained_on` nothing.
        dataset_name: `--dataset-name`.
        data_dir: `--data-dir`.
        data_files: `--data-files`, each with its split or none with it.
        dataset_kwargs: `--dataset-kwargs`.
        trained_on: A recipe, whose corpus it is where `dataset` is None; the other options go before the recipe's.

    Raises:
        InputError: An option is misspelt.
    """
    kwargs = _nest(parse_pairs("--dataset-kwargs", dataset_kwargs or ()))
    if data_files:
        kwargs["data_files"] = _parse_data_files(data_files)
    if dataset is not None:
        return Corpus(dataset, dataset_name, data_dir, kwargs)
    return Corpus(
        trained_on.dataset,
        dataset_name or trained_on.dataset_name,
        data_dir or trained_on.data_dir,
        {**trained_on.dataset_kwargs, **kwargs},
    )


def choose_corpus(recipe: Recipe, dataset: str | None, *options: Any) -> tuple[Recipe, Corpus]:
    """A recipe with what the options of a command say of its corpus, and that corpus; arguments as `read_corpus`.

    A folder given on the command line is in the corpus alone: it is this machine's, not the recipe's.
    """
    corpus = read_corpus(dataset, *options, trained_on=recipe.training)
    if corpus.path is None:
        if corpus.name or corpus.kwargs:
            raise InputError(
                "--dataset-name, --data-files and --dataset-kwargs are for one corpus, and this recipe has a mixture: "
                "name one with --dataset, or give all entries, as in --mixture '[{dataset: mscoco, share: 1}, …]'"
            )
        return recipe, corpus
    fields = {"dataset": corpus.path, "dataset_name": corpus.name, "dataset_kwargs": corpus.kwargs}
    return recipe.override(fields if dataset is None else {**fields, "data_dir": None}), corpus


def read_evaluated_corpus(model: str, dataset: str | None, *options: Any) -> Corpus:
    """As `read_corpus`; without `--dataset` it is what the model in an output folder of `train` was trained on.

    Raises:
        InputError: An option is misspelt, or the model is in no such folder.
    """
    trained_on = None if dataset else find_training_config(model)
    if dataset is None and trained_on is None:
        raise InputError(f"--dataset is missing, and {model} is no output folder of `train`, which would know it")
    if dataset is None and trained_on.dataset is None:
        parts = ", ".join(corpus.title for corpus in trained_on.corpora)
        raise InputError(
            f"--dataset is missing: {model} was trained on a mixture ({parts}); name the one to evaluate on"
        )
    return read_corpus(dataset, *options, trained_on=trained_on)


def find_training_config(model: str) -> TrainingConfig | None:
    """How the model in an output folder of `train` was trained; None for any other model."""
    from ..training.recipe import load_recipe

    folder = Path(model) / "recipe"
    return load_recipe(folder).training if folder.is_dir() else None


def pick_split(splits: datasets.DatasetDict, split: str) -> datasets.Dataset:
    """One split of a corpus that was read whole.

    Raises:
        InputError: There is no such split.
    """
    if split not in splits:
        raise InputError(f"the corpus has no split {split}; it has: {', '.join(splits)}")
    return splits[split]


def take_rows(rows: datasets.Dataset, max_samples: int | None, sample_seed: int | None = None) -> datasets.Dataset:
    """So many rows at most: the first, or drawn at random by a seed."""
    if sample_seed is not None:
        rows = rows.shuffle(seed=sample_seed)
    return rows if max_samples is None else rows.select(range(min(max_samples, len(rows))))


def _nest(kwargs: dict[str, Any]) -> dict[str, Any]:
    """`{"columns.source": "a", "seed": 1}` as `{"columns": {"source": "a"}, "seed": 1}`."""
    nested: dict[str, Any] = {}
    for key, value in kwargs.items():
        name, inner, field = key.partition(".")
        if inner:
            nested.setdefault(name, {})[field] = str(value)
        else:
            nested[name] = value
    return nested


def _parse_data_files(files: Iterable[str]) -> list[str] | dict[str, list[str]]:
    """`["a.csv", "b.csv"]` as it is; `["train=a.csv", "test=b.csv"]` by split."""
    by_split: dict[str | None, list[str]] = {}
    for file in files:
        split, _, path = file.partition("=")
        by_split.setdefault(split if split in SPLITS else None, []).append(path if split in SPLITS else file)
    if None in by_split and len(by_split) > 1:
        raise InputError(f"--data-files: give each file its split, or none, as in train=mine.csv; {', '.join(SPLITS)}")
    return by_split.get(None, by_split)
