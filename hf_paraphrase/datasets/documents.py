from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets

from ..common.errors import InputError
from ..common.fields import option
from .builder import TEXT, CorpusBuilder, CorpusConfig, check_order
from .corpus_reader import CorpusReader
from .sentences import Splitter, sentence_splitter

UNKNOWN = "<unk>"
# The words of the package's word tokenizer; corpora that come with unknown words keep them.
LETTERS = rf"(?:{UNKNOWN}|\w+(?:['’]\w+)*)"
WORD = re.compile(rf"{LETTERS}|[^\w\s]")
# Written, words that a hyphen or dash joins stay joined: from "week - long" no tokenizer could make "week-long" again.
WRITTEN = re.compile(rf"{LETTERS}(?:[-–—]{LETTERS})*|[^\w\s]")
# So many different words are counted at a time, about 200 MB.
MOST_COUNTED = 2_000_000


@dataclass
class DocumentConfig(CorpusConfig):
    """Which documents are kept, and how they are written."""

    seed: int = option("Decides which document is in which split.", 42)
    min_words: int = option("Shorter documents are left out; punctuation counts.", 50, least=1)
    max_words: int = option("Longer documents are left out.", 250)
    vocabulary_size: int = option("The known words: the most frequent ones of the training split.", 25_000, least=1)
    max_unknown: float = option("Documents with a larger share of other words are left out.", 0.02, least=0, most=1)
    lowercase: bool = option("Lower-case everything.", True)
    splitter: Splitter = option("What splits sentences: `rules`, or, as in the paper, `punkt` (needs NLTK).", "rules")
    train_size: int = option("Most documents to train on.", 340_000, least=1)
    validation_size: int = option("Most documents to validate on. The paper names none.", 4000, least=0)
    test_size: int = option("Most documents to test on. Of fewer the three sizes are proportions.", 40_000, least=0)

    def check(self) -> None:
        super().check()
        check_order(self, "min_words", "max_words")

    def sizes(self) -> dict[str, int]:
        return {"test": self.test_size, "validation": self.validation_size, "train": self.train_size}


class DocumentBuilder(CorpusBuilder):
    """Documents as lists of tokenised sentences, chosen as in Li et al. 2015, section 4.1.

    A first pass over the files counts the words of the training split, then each split is read in one of its own, and
    in one more where there are more documents than wanted. Memory holds the words that are counted and the hashes of
    the documents of one split that is cut, never the documents.
    """

    VERSION = datasets.Version("1.1.0")
    BUILDER_CONFIG_CLASS = DocumentConfig
    tasks = ("text-generation",)

    def texts(self, reader: CorpusReader, path: Path) -> Iterator[str]:
        """Read the documents of a file; damaged ones go to `reader.reject`."""
        raise NotImplementedError

    def features(self) -> datasets.Features:
        return datasets.Features({"sentences": datasets.List(TEXT)})

    def parts(self) -> dict[str, dict[str, Any]]:
        # Early: before minutes of reading.
        sentence_splitter(self.config.splitter)
        paths = self.paths(self.data_dir)
        counts: Counter[str] = Counter()
        vocabulary = most_frequent(self._train_words(paths, counts), self.config.vocabulary_size)
        if not counts:
            raise InputError(
                f"{self.data_dir} holds no document of {self.config.min_words} to {self.config.max_words} words "
                f"(`min_words`, `max_words`); {self.layout()}"
            )
        if next(self._documents(paths, "train", vocabulary), None) is None:
            raise InputError(
                f"{self.data_dir} holds no document with few enough unknown words (`max_unknown`, `vocabulary_size`)"
            )
        parts = {}
        for split, size in reversed(self.config.sizes().items()):
            points = (point for point, _ in self._documents(paths, split, vocabulary))
            smallest = heapq.nsmallest(size + 1, points) if counts[split] > size else []
            # The point at which a split ends that has more documents than are wanted.
            end = smallest[size] if len(smallest) > size else 1.0
            parts[split] = {"paths": paths, "split": split, "vocabulary": vocabulary, "end": end}
        return parts

    def _train_words(self, paths: list[Path], counts: Counter[str]) -> Iterator[list[str]]:
        """The words of each document to train on; those of fitting length are counted, by split."""
        with self.reader() as reader:
            for path in paths:
                for text in self.texts(reader, path):
                    if words := self._fitting_words(text):
                        split = split_of(self._point(text), self.config.sizes())
                        counts[split] += 1
                        if split == "train":
                            yield words

    def _documents(
        self, paths: list[Path], split: str, vocabulary: frozenset[str], end: float = 1.0
    ) -> Iterator[tuple[float, str]]:
        # Not used as a context: the first pass has judged and reported the damaged lines.
        reader = replace(self.reader(), max_bad_fraction=1.0)
        for path in paths:
            for text in self.texts(reader, path):
                point = self._point(text)
                if point < end and split_of(point, self.config.sizes()) == split:
                    words = self._fitting_words(text)
                    unknown = sum(word not in vocabulary for word in words)
                    if words and unknown <= self.config.max_unknown * len(words):
                        yield point, text

    def generate_rows(
        self, paths: list[Path], split: str, vocabulary: frozenset[str], end: float
    ) -> Iterator[dict[str, Any]]:
        split_sentences = sentence_splitter(self.config.splitter)
        for _, text in self._documents(paths, split, vocabulary, end):
            sentences = (write_words(self._normalize(sentence)) for sentence in split_sentences(text))
            yield {"sentences": [sentence for sentence in sentences if sentence]}

    def _fitting_words(self, text: str) -> list[str]:
        """The words of a document; none where they are too few or too many."""
        words = tokenize(self._normalize(text))
        return words if self.config.min_words <= len(words) <= self.config.max_words else []

    def _normalize(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        return text.lower() if self.config.lowercase else text

    def _point(self, text: str) -> float:
        # Without case and white space, so that no two texts that are written as the same row get different points.
        letters = "".join(unicodedata.normalize("NFC", text).lower().split())
        return split_point(self.config.seed, letters)


def tokenize(text: str) -> list[str]:
    """Split a text into words, apostrophes inside them included, and single other visible characters."""
    return WORD.findall(text)


def write_words(text: str) -> str:
    """Write a text with spaces between its words, but for those that a hyphen or dash joins."""
    return " ".join(WRITTEN.findall(text))


def most_frequent(documents: Iterable[list[str]], size: int, most_counted: int = MOST_COUNTED) -> frozenset[str]:
    """Count words, and return the `size` most frequent ones but `<unk>`; of equally frequent ones the first in the
    alphabet.

    Whenever there are more than `most_counted` different words, the rarest are forgotten, so that memory is bounded.
    What is rare in a corpus that large is not among its most frequent words.
    """
    counts: Counter[str] = Counter()
    for words in documents:
        counts.update(words)
        least = 1
        while len(counts) > most_counted:
            counts = Counter({word: count for word, count in counts.items() if count > least})
            least += 1
    del counts[UNKNOWN]
    return frozenset(heapq.nsmallest(size, counts, key=lambda word: (-counts[word], word)))


def split_point(seed: int, text: str) -> float:
    """A point from 0 to 1, spread evenly over texts, that depends on the seed and the text alone."""
    digest = hashlib.sha256(f"{seed}\0{text}".encode()).digest()
    return int.from_bytes(digest[:6]) / 256**6


def split_of(point: float, sizes: dict[str, int] | dict[str, float]) -> str:
    """The split that a point lies in when the splits, in order, take shares of the line that are their sizes."""
    position = point * sum(sizes.values())
    for split, size in sizes.items():
        if position < size:
            return split
        position -= size
    # Rounding, at the very end.
    return split
