from __future__ import annotations

import re
from collections.abc import Iterator

from .corpus_reader import CorpusReader
from .sentence_pairs import LI2018_FILES, Pair, SentencePairsBuilder, SentencePairsConfig

# Those of Li et al. 2018.
SIZES = {"test_size": 5000, "max_words": 20}

TRAIN_FILE, TEST_FILE = "Twitter_URL_Corpus_train.txt", "Twitter_URL_Corpus_test.txt"
# Some lines of the release have one more, empty column before the address.
COLUMNS = ("sentence1", "sentence2", "votes", "url", "more")
VOTES = re.compile(r"\(([0-6]), ?6\)")


class TwitterUrlBuilder(SentencePairsBuilder):
    """Tweets that share a link: those that people found to be paraphrases, or all with their labels."""

    corpus_name = "twitter_url"
    BUILDER_CONFIGS = [
        SentencePairsConfig("paraphrases", description="Pairs that four of six people or more found equal.", **SIZES),
        SentencePairsConfig("pairs", description="All clear pairs with labels."),
        SentencePairsConfig("li2018", description="An existing split of the part labelled automatically.", **SIZES),
    ]
    files = (TRAIN_FILE, TEST_FILE, *(name for names in LI2018_FILES.values() for name in names))
    expected = f"expected in it: {TRAIN_FILE} and {TEST_FILE} (sentence1⇥sentence2⇥(n, 6)⇥url)"
    origin = "the corpus is given out by its authors, github.com/lanwuwei/Twitter-URL-Corpus (CC BY-NC-SA 3.0)"
    licence_id = "cc-by-nc-sa-3.0"

    def read_splits(self, reader: CorpusReader) -> dict[str, list[Pair]]:
        files = self._read(reader, TRAIN_FILE), self._read(reader, TEST_FILE)
        return self.divide_files(*files, linked=self.labelled)

    def _read(self, reader: CorpusReader, name: str) -> Iterator[Pair]:
        path = self.find(name)
        for number, (first, second, votes, *_) in self.texts(reader, path, COLUMNS, COLUMNS[:2], optional=2):
            match = VOTES.fullmatch(votes.strip())
            if match is None:
                reader.reject(path, number, f"has the votes {votes[:20]!r}, not (n, 6)")
            elif match[1] != "3":
                yield first, second, int(int(match[1]) > 3)
