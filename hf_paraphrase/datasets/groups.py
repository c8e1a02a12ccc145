from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import datasets

from ..common.errors import InputError
from ..common.fields import option
from ..common.text_tables import TextTable, table_kind
from .builder import CorpusConfig, ParaphraseBuilder, check_order, seeded_order
from .corpus_reader import CorpusReader, is_text
from .pair_filter import ComparedSentence, PairFilter
from .sampling import cut, divide_linked, held_out_sizes
from .table_files import SPLITS, check_splits

logger = logging.getLogger(__name__)

LINES, TABLES = ("tsv", "txt"), ("jsonl", "parquet")


@dataclass
class GroupsConfig(CorpusConfig, PairFilter):
    """How groups become pairs and splits."""

    group_column: str = option("Column of jsonl and Parquet files that holds the list of sentences.", "sentences")
    seed: int = option("Decides which groups are held out, and which of their sentences are sources.", 42)
    validation_size: int = option("Groups to validate on, a pair each, where only one set is given.", 1000, least=0)
    test_size: int = option("Groups to test on, likewise.", 1000, least=0)
    max_held_out: float = option("The share of the groups that the two may take together.", 0.1, least=0, most=1)
    max_references: int = option("References of a test row at most.", 5, least=1)

    def check(self) -> None:
        super().check()
        check_order(self, "min_overlap", "max_overlap")
        check_order(self, "min_words", "max_words")


FILTERED = GroupsConfig(
    name="filtered",
    description="Pairs that differ, and change no number, name, person or polarity.",
    min_overlap=0.3,
    max_overlap=0.9,
    max_length_ratio=1.6,
    min_words=3,
    max_words=45,
    same_numbers=True,
    same_names=True,
    same_pronouns=True,
    same_polarity=True,
)


@dataclass(frozen=True)
class SentenceGroup:
    """Sentences of one meaning."""

    sentences: tuple[str, ...]  # at least two, no two of which differ in case alone
    pairs: tuple[tuple[str, str], ...]  # those that are kept, each in the order of the sentences

    @property
    def number(self) -> int:
        """A number of its own, which depends on its sentences alone: on no file, order or process."""
        text = "\n".join(sorted(map(str.casefold, self.sentences)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


class GroupsBuilder(ParaphraseBuilder):
    """Groups of sentences with one meaning, from files of your own, as pairs."""

    corpus_name = "groups"
    BUILDER_CONFIGS = [GroupsConfig(name="default", description="Every pair of a group."), FILTERED]
    private = True
    origin = 'for instance load_dataset("groups", data_files="groups.tsv")'

    def features(self) -> datasets.Features:
        return datasets.Features({**super().features(), "group": datasets.Value("int64")})

    def columns(self, split: str) -> list[str] | None:
        return super().columns(split) if split == "test" else ["source", "target", "group"]

    def layout(self) -> str:
        return (
            "expected are .tsv or .txt files with a group of at least two sentences a line, separated by tabs, or "
            f".jsonl or .parquet files with a list of sentences in {self.config.group_column!r}; {self.origin}"
        )

    def parts(self) -> dict[str, dict[str, Any]]:
        files = check_splits(self.config.data_files, self.layout())
        parts = self._divide(files["train"]) if set(files) == {"train"} else self._given(files)
        return {split: {"split": split, **parts[split]} for split in SPLITS if split in parts}

    def _divide(self, paths: Iterable[str]) -> dict[str, dict[str, Any]]:
        groups = tuple(self._read(paths))
        config = self.config
        sizes = held_out_sizes(len(groups), config.validation_size, config.test_size, config.max_held_out)
        places = divide_linked([group.sentences for group in groups], *sizes, config.seed)
        return {split: {"groups": tuple(groups[place] for place in places[split])} for split in SPLITS}

    def _given(self, files: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Any]]:
        """Take the splits that the files have, without what is in a later one."""
        parts: dict[str, dict[str, Any]] = {}
        held_out: frozenset[str] = frozenset()
        for split in ("test", "validation"):
            if split in files:
                parts[split] = {"groups": tuple(self._read(files[split], held_out))}
                held_out |= {text.casefold() for group in parts[split]["groups"] for text in group.sentences}
        if "train" in files:
            parts["train"] = {"paths": list(files["train"]), "held_out": held_out}
        return parts

    def generate_rows(
        self,
        split: str,
        groups: tuple[SentenceGroup, ...] | None = None,
        paths: Iterable[str] = (),
        held_out: Set[str] = frozenset(),
    ) -> Iterator[dict[str, Any]]:
        for group in self._read(paths, held_out) if groups is None else groups:
            yield from self._rows(split, group)

    def _rows(self, split: str, group: SentenceGroup) -> Iterator[dict[str, Any]]:
        ways = [way for pair in group.pairs for way in (pair, pair[::-1])]
        if split == "train":
            for source, target in ways:
                yield {"source": source, "target": target, "group": group.number}
            return
        source = seeded_order({one for one, _ in ways}, self.config.seed)[0]
        references = seeded_order([other for one, other in ways if one == source], self.config.seed, source)
        if split == "test":
            yield {"source": source, "references": references[: self.config.max_references]}
        else:
            yield {"source": source, "target": references[0], "group": group.number}

    def _read(self, paths: Iterable[str], held_out: Set[str] = frozenset()) -> Iterator[SentenceGroup]:
        """Read groups of which a pair is kept, without those that have a sentence of a held-out split."""
        refused: Counter[str] = Counter()
        pairs = 0
        with self.reader() as reader:
            for path in map(Path, paths):
                for number, value in self._values(reader, path):
                    sentences = _different(value)
                    if len(sentences) < 2:
                        reader.reject(path, number, "has fewer than two different sentences")
                    elif not held_out.isdisjoint(sentences):
                        refused["groups share a sentence with a held-out split"] += 1
                    elif (group := _pair_up(tuple(sentences.values()), self.config, refused)).pairs:
                        pairs += len(group.pairs)
                        yield group
        for reason, count in refused.most_common():
            logger.info("groups: left out %s: %s", f"{count:,}", reason)
        logger.info("groups: kept %s pairs", f"{pairs:,}")

    def _values(self, reader: CorpusReader, path: Path) -> Iterator[tuple[int, Any]]:
        """Read the lists of sentences of a file, unchecked, each with its line."""
        kind = table_kind(path)
        if kind in LINES:
            yield from ((number, line.split("\t")) for number, line in reader.lines(path))
        elif kind in TABLES:
            cells = reader.cells(TextTable(path, kind), (self.config.group_column,))
            yield from ((number, value) for number, (value,) in cells)
        else:
            raise InputError(f"{path} ends in {path.suffix or 'nothing'}; {self.layout()}")


def _different(value: Any) -> dict[str, str]:
    """The sentences of a list by their casefolded form, the first of equal ones; none of what is no list of texts."""
    if not isinstance(value, list) or not all(map(is_text, value)):
        return {}
    sentences: dict[str, str] = {}
    for text in value:
        if text := cut(text, None):
            sentences.setdefault(text.casefold(), text)
    return sentences


def _pair_up(texts: tuple[str, ...], kept: PairFilter, refused: Counter[str]) -> SentenceGroup:
    """Make the pairs of a group that a filter keeps, and count the others by the argument that refuses them."""
    fit = list(filter(kept.takes, map(ComparedSentence, texts)))
    refused["sentences by min_words or max_words"] += len(texts) - len(fit)
    pairs = []
    for one, other in combinations(fit, 2):
        reason = kept.refusal(one, other)
        if reason is None:
            pairs.append((one.text, other.text))
        else:
            refused[f"pairs by {reason}"] += 1
    return SentenceGroup(texts, tuple(pairs))
