from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..common.fields import option
from ..common.installation import require
from .addresses import Release
from .corpus_reader import CorpusReader
from .sampling import index_texts, linked_groups, pair_key, search_index
from .sentence_pairs import LI2018_FILES, Pair, SentencePairsBuilder, SentencePairsConfig

FILE = "quora_duplicate_questions.tsv"
# Those of Li et al. 2018.
SIZES = {"train_size": 100_000, "validation_size": 3000, "test_size": 30_000, "max_words": 20}
COLUMNS = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")


@dataclass
class QuoraConfig(SentencePairsConfig):
    """As `SentencePairsConfig`, with what `clean_pairs` draws from."""

    pool_size: int = option(
        "For `clean_pairs`: number of most similar questions from which non-duplicates are drawn.", 10, least=1
    )


class QuoraBuilder(SentencePairsBuilder):
    """Quora's question pairs: duplicates as paraphrases, or all pairs with their labels."""

    corpus_name = "quora"
    BUILDER_CONFIGS = [
        QuoraConfig("paraphrases", description="Duplicates, divided at random.", **SIZES),
        QuoraConfig("clean", description="Duplicates, divided so that splits share no question.", **SIZES),
        QuoraConfig("pairs", description="All pairs with labels.", validation_size=10_000, test_size=10_000),
        QuoraConfig("clean_pairs", description="The pairs of clean, and as many sampled ones that are none.", **SIZES),
        QuoraConfig("li2018", description="An existing split, whose test rows say if they stand in train.", **SIZES),
    ]
    files = (FILE, *(name for names in LI2018_FILES.values() for name in names))
    expected = f"expected in it: {FILE} ({'⇥'.join(COLUMNS)})"
    origin = f"{FILE} is the First Quora Dataset Release of quoradata.quora.com (Quora's terms, non-commercial)"

    @property
    def labelled(self) -> bool:
        return self.config.name in ("pairs", "clean_pairs")

    def release(self) -> Release | None:
        return None if self.existing else super().release()

    def read_splits(self, reader: CorpusReader) -> dict[str, list[Pair]]:
        if self.config.name == "clean_pairs":
            require("bm25s", "ranking", "clean_pairs of quora")
        pairs = self.read_labelled(reader, FILE, "is_duplicate", COLUMNS, COLUMNS[3:5], quoted=True)
        return self.divide(pairs, linked=self.config.name.startswith("clean"))

    def generate_rows(
        self, pairs: Iterable[Pair], split: str, known: set[tuple[str, str]]
    ) -> Iterator[dict[str, Any]]:
        rows = self._beside_others(pairs) if self.config.name == "clean_pairs" else pairs
        yield from super().generate_rows(rows, split, known)

    def _beside_others(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Follow each pair with its first question paired with a similar non-duplicate, if any."""
        linked = linked_groups(pairs, lambda pair: pair_key(*pair[:2]))
        groups = {question: number for number, group in enumerate(linked) for pair in group for question in pair[:2]}
        questions = sorted(groups)
        index = index_texts(questions)
        for first, second, label in pairs:
            yield first, second, label
            found = (questions[place] for place in search_index(index, first, self.config.pool_size))
            others = [question for question in found if groups[question] != groups[first]]
            if others:
                # `random` is all of a generator that promises the same numbers in every version of Python.
                place = int(random.Random(f"{self.config.seed}\0{first}\0{second}").random() * len(others))
                yield first, others[place], 0
