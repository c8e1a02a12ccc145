"""The corpus of a command: options that are spelt alike everywhere, as `load_dataset` spells its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..common.errors import InputError
from ..common.fields import option
from .options import pairs_option, parse_pairs
from .verbs import Verb

if TYPE_CHECKING:
    import datasets

    from ..training.arguments import TrainingConfig
    from ..training.recipe import Recipe

SPLITS = ("train", "validation", "test")
ANY_CORPUS = (
    "Corpus, one of `hf-paraphrase datasets list` (`pairs` is your own); or owner/name of the Hub, a file or a folder "
    "that datasets reads."
)


Files = list[str] | dict[str, list[str]] | None


@dataclass(frozen=True)
class Corpus:
    """What `load_dataset` is asked for; `path` is None for a recipe's mixture, `kwargs` has `data_files` too."""

    path: str | None
    name: str | None
    data_dir: str | Path | None
    kwargs: dict[str, Any]

    @property
    def is_streamed(self) -> bool:
        """Whether the rows are to be made while they are read."""
        return bool(self.kwargs.get("streaming"))

    def load(self, split: str | None = None, may_stream: bool = False) -> Any:
        """Read all splits, or one; InputError where they are to be streamed and may not."""
        from ..datasets import load_dataset

        if self.is_streamed and not may_stream:
            raise InputError(
                "--dataset-kwargs streaming=true is for `datasets preview` and `train`; here all rows are needed: "
                "streaming=false"
            )
        return load_dataset(cast(str, self.path), name=self.name, data_dir=self.data_dir, split=split, **self.kwargs)


def _read_kwargs(label: str, pairs: list[str]) -> dict[str, Any]:
    """`["columns.source=a", "seed=1"]` as `{"columns": {"source": "a"}, "seed": 1}`."""
    nested: dict[str, Any] = {}
    for key, value in parse_pairs(label, pairs).items():
        name, inner, field = key.partition(".")
        if inner:
            nested.setdefault(name, {})[field] = str(value)
        else:
            nested[name] = value
    return nested


def _read_files(label: str, files: list[str]) -> Files:
    """`["a.csv", "b.csv"]` as it is; `["train=a.csv", "test=b.csv"]` by split."""
    by_split: dict[str | None, list[str]] = {}
    for file in files:
        split, _, path = file.partition("=")
        by_split.setdefault(split if split in SPLITS else None, []).append(path if split in SPLITS else file)
    if None in by_split and len(by_split) > 1:
        raise InputError(f"{label}: give each file its split, or none, as in train=mine.csv; {', '.join(SPLITS)}")
    return by_split.get(None) or {split: paths for split, paths in by_split.items() if split is not None}


def files_option(help: str) -> Any:
    """An option that names files, each with its split or none."""
    return option(help, None, metavar="[SPLIT=]FILE", read=_read_files, many=True)


class CorpusOptions(Verb):
    """A corpus, as arguments of `load_dataset`."""

    dataset: str | None = option(f"{ANY_CORPUS}  [default: what the model or recipe was made for]", None)
    dataset_name: str | None = option("Configuration of the corpus, if it has several.", None)
    data_dir: Path | None = option(
        "Folder with the corpus's published files.  [default: downloaded, where their address is open]", None
    )
    data_files: Files = files_option("File of the corpus `pairs`, for instance test=mine.csv; repeatable.")
    dataset_kwargs: dict[str, Any] = pairs_option(
        "Argument of the corpus builder, or of another dataset, such as columns.source=question1; repeatable.",
        _read_kwargs,
    )

    def find_corpus(self, trained_on: TrainingConfig | None = None) -> Corpus:
        """The named corpus, or that of a recipe with the other options applied."""
        kwargs = self.dataset_kwargs | ({"data_files": self.data_files} if self.data_files else {})
        if self.dataset is not None or trained_on is None:
            return Corpus(self.dataset, self.dataset_name, self.data_dir, kwargs)
        return Corpus(
            trained_on.dataset,
            self.dataset_name or trained_on.dataset_name,
            self.data_dir or trained_on.data_dir,
            {**trained_on.dataset_kwargs, **kwargs},
        )

    def find_corpus_of(self, model: str) -> Corpus:
        """The named corpus, or the one that the model in an output folder of `train` learnt; InputError without."""
        trained_on = None if self.dataset else find_training_config(model)
        if self.dataset is None and trained_on is None:
            raise InputError(f"--dataset is missing, and {model} is not an output folder of `train`, which records it")
        if trained_on is not None and trained_on.dataset is None:
            parts = ", ".join(corpus.title for corpus in trained_on.corpora)
            raise InputError(
                f"--dataset is missing: {model} was trained on a mixture ({parts}); name the one to evaluate on"
            )
        return self.find_corpus(trained_on)


class SplitOptions(CorpusOptions):
    """Rows of a corpus."""

    split: str = option("Split to evaluate on.", "test")
    max_samples: int | None = option(
        "Use only the first rows; for a language model, evenly spaced examples.", None, least=1
    )
    sample_seed: int | None = option("Draw the rows of --max-samples at random with this seed.", None)

    def take(self, rows: datasets.Dataset) -> datasets.Dataset:
        """At most as many rows as asked for: the first ones, or a seeded random sample."""
        if self.sample_seed is not None:
            rows = rows.shuffle(seed=self.sample_seed)
        return rows if self.max_samples is None else rows.select(range(min(self.max_samples, len(rows))))

    def describe(self, corpus: Corpus) -> dict[str, Any]:
        """What results say of the rows: where they come from, without the place on this machine."""
        described = {"path": corpus.path, "name": corpus.name, "kwargs": corpus.kwargs}
        return described | {"max_samples": self.max_samples, "sample_seed": self.sample_seed}


def choose_corpus(recipe: Recipe, options: CorpusOptions) -> tuple[Recipe, Corpus]:
    """A recipe with the corpus options of a command applied, and its corpus.

    A folder given on the command line is in the corpus alone: it is this machine's, not the recipe's.
    """
    corpus = options.find_corpus(recipe.training)
    if corpus.path is None:
        if corpus.name or corpus.kwargs:
            raise InputError(
                "--dataset-name, --data-files and --dataset-kwargs are for one corpus, and this recipe has a mixture: "
                "name one with --dataset, or give all entries, as in --mixture '[{dataset: mscoco, share: 1}, …]'"
            )
        return recipe, corpus
    fields = {"dataset": corpus.path, "dataset_name": corpus.name, "dataset_kwargs": corpus.kwargs}
    return recipe.override(fields if options.dataset is None else {**fields, "data_dir": None}), corpus


def find_training_config(model: str | Path) -> TrainingConfig | None:
    """How the model in an output folder of `train` was trained; None for any other model."""
    from ..training.recipe import load_recipe

    folder = Path(model) / "recipe"
    return load_recipe(folder).training if folder.is_dir() else None


def pick_split(splits: datasets.DatasetDict, split: str) -> datasets.Dataset:
    """One split of a corpus that was read whole."""
    if split not in splits:
        raise InputError(f"the corpus has no split {split}; it has: {', '.join(splits)}")
    return splits[split]
