from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets

from ..common.fields import option
from .builder import TEXT, CorpusConfig, ParaphraseBuilder
from .corpus_reader import CorpusReader
from .sampling import cut, deal, held_out_sizes, linked_groups, pair_key

logger = logging.getLogger(__name__)

# Two sentences and their label.
Pair = tuple[str, str, int]

# The files of a split that others made, by split, in a folder of their own or beside the corpus.
LI2018_FILES = {
    split: (name, f"li2018_split/{name}")
    for split, name in (("train", "train.tsv"), ("validation", "val.tsv"), ("test", "test.tsv"))
}


@dataclass
class SentencePairsConfig(CorpusConfig):
    """How sentence pairs become splits."""

    seed: int = option("Decides which pairs are in which split.", 42)
    train_size: int | None = option("Pairs to train on at most; None takes all the rest.", None, least=0)
    validation_size: int = option("Pairs to validate on.", 1000, least=0)
    test_size: int | None = option("Pairs to test on; None takes a corpus's whole test file.", None, least=0)
    max_held_out: float = option("The share of the pairs to validate and test on, at most.", 0.25, least=0, most=1)
    max_words: int | None = option("Most words of a sentence; longer ones are cut.", None, least=1)


class SentencePairsBuilder(ParaphraseBuilder):
    """Labelled sentence pairs; those with the last label also serve as paraphrases."""

    labels: ClassVar[tuple[str, ...]] = ("not_paraphrase", "paraphrase")
    tasks = ("text-generation", "text-classification")

    @property
    def labelled(self) -> bool:
        """Whether the rows are labelled pairs, not paraphrases."""
        return self.config.name == "pairs"

    @property
    def existing(self) -> bool:
        """Whether the splits are those that others made."""
        return self.config.name == "li2018"

    def features(self) -> datasets.Features:
        if self.labelled:
            label = datasets.ClassLabel(names=list(self.labels))
            return datasets.Features({"sentence1": TEXT, "sentence2": TEXT, "label": label})
        in_train = {"in_train": datasets.Value("bool")} if self.existing else {}
        return datasets.Features({**super().features(), **in_train})

    def columns(self, split: str) -> list[str] | None:
        if self.labelled:
            return None
        if self.existing and split == "test":
            return ["source", "references", "in_train"]
        return super().columns(split)

    def layout(self) -> str:
        if self.existing:
            return "expected there, or in its subfolder li2018_split: train.tsv, val.tsv, test.tsv (source⇥target)"
        return super().layout()

    def read_splits(self, reader: CorpusReader) -> dict[str, list[Pair]]:
        """Read the pairs of every split, of configurations whose splits are made here."""
        raise NotImplementedError

    def divide(self, pairs: Iterable[Pair], linked: bool = False) -> dict[str, list[Pair]]:
        """Split pairs at random into test, validation and train; duplicates count once, and pairs that this
        configuration serves with two labels are left out.

        `linked` keeps pairs that share a sentence, directly or through others, in one split.
        """
        return self._deal(self.distinct(filter(self.serves, pairs)), self.config.test_size or 0, linked)

    def _deal(self, pairs: list[Pair], test_size: int, linked: bool) -> dict[str, list[Pair]]:
        config = self.config
        groups = linked_groups(pairs, lambda pair: pair_key(*pair[:2])) if linked else ([pair] for pair in pairs)
        validation, test = held_out_sizes(len(pairs), config.validation_size, test_size, config.max_held_out)
        sizes = {"test": test, "validation": validation, "train": config.train_size}
        return deal(groups, sizes, key=lambda pair: pair_key(*pair[:2]), seed=config.seed)

    def divide_files(self, train: Iterable[Pair], test: Iterable[Pair], linked: bool = False) -> dict[str, list[Pair]]:
        """Keep all rows of the corpus's own test file, as in published figures, and take the validation pairs from the
        distinct ones of the other file at random, without those that have two labels or occur in the test file.

        `linked` keeps train pairs that share a sentence, directly or through others, in one split.
        """
        test = sorted(filter(self.serves, test))
        tested = {pair_key(*pair[:2]) for pair in test}
        found = list(filter(self.serves, self.distinct(train)))
        train = [pair for pair in found if pair_key(*pair[:2]) not in tested]
        if len(train) < len(found):
            logger.warning("%d train pairs stand in the test file too; left out", len(found) - len(train))
        return self._deal(train, 0, linked) | {"test": test[: self.config.test_size]}

    def serves(self, pair: Pair) -> bool:
        """Whether a pair is one of this configuration: any, or one that says the same in other words."""
        first, second, label = pair
        return self.config.name == "pairs" or bool(label) and first.casefold() != second.casefold()

    def distinct(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The distinct pairs in a fixed random order; pairs with two labels are dropped and counted."""
        distinct: dict[tuple[str, str], Pair] = {}
        conflicting = set()
        for pair in pairs:
            key = pair_key(*pair[:2])
            known = distinct.setdefault(key, pair)
            if known[2] != pair[2]:
                conflicting.add(key)
            distinct[key] = min(pair, known)
        if conflicting:
            logger.warning("%d pairs stand in the file with two labels; left out", len(conflicting))
        return sorted(pair for key, pair in distinct.items() if key not in conflicting)

    def texts(
        self, reader: CorpusReader, path: Path, columns: Sequence[str], texts: Sequence[str], **options: Any
    ) -> Iterator[tuple[int, list[str]]]:
        """Read rows with sentences, `texts` among their columns, which are cut; a row without one of them is bad.
        Options are those of `CorpusReader.rows`."""
        places = [columns.index(name) for name in texts]
        for number, row in reader.rows(path, columns, **options):
            for place in places:
                row[place] = cut(row[place], self.config.max_words)
            empty = [columns[place] for place in places if not row[place]]
            if empty:
                reader.reject(path, number, f"has no {empty[0]}")
            else:
                yield number, row

    def read_labelled(
        self, reader: CorpusReader, name: str, column: str, *names: Any, **options: Any
    ) -> Iterator[Pair]:
        """Read pairs of a file whose label, in a column, is 0 or 1; the other arguments are those of `texts`."""
        path, place = self.find(name), names[0].index(column)
        for number, row in self.texts(reader, path, *names, header=True, **options):
            if row[place] in ("0", "1"):
                first, second = (row[names[0].index(text)] for text in names[1])
                yield first, second, int(row[place])
            else:
                reader.reject(path, number, f"has {column} {row[place][:20]!r}, not 0 or 1")

    def read_existing(self, reader: CorpusReader) -> dict[str, list[Pair]]:
        """Read the files of a split that others made, `source⇥target` a line, keeping every row."""
        names = ("source", "target")
        return {
            split: [(first, second, 1) for _, (first, second) in self.texts(reader, self.find(*files), names, names)]
            for split, files in LI2018_FILES.items()
        }

    def parts(self) -> dict[str, dict[str, Any]]:
        with self.reader() as reader:
            splits = self.read_existing(reader) if self.existing else self.read_splits(reader)
        known = {pair_key(*pair[:2]) for pair in splits["train"]} if self.existing else set()
        order = sorted(splits, key=["train", "validation", "test"].index)
        return {split: {"pairs": tuple(splits[split]), "split": split, "known": known} for split in order}

    def generate_rows(
        self, pairs: Iterable[Pair], split: str, known: set[tuple[str, str]]
    ) -> Iterator[dict[str, Any]]:
        for first, second, label in pairs:
            if self.labelled:
                row = {"sentence1": first, "sentence2": second, "label": label}
            elif split == "test":
                row = {"source": first, "references": [second]}
                if self.existing:
                    row["in_train"] = pair_key(first, second) in known
            else:
                row = {"source": first, "target": second}
            yield row
