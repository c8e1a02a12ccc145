from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..common.fields import option
from .corpus_reader import CorpusReader
from .sampled_pairs import PairStore, SampledPairsBuilder, SampledPairsConfig, TextIndex, hash_texts

logger = logging.getLogger(__name__)

PAIRS_FILE, QUESTIONS_FILE = "word_alignments.txt", "questions.txt"
PAIR_COLUMNS = ("question1", "question2", "alignment")
QUESTION_COLUMNS = ("question", "tokens", "tags", "lemmas", "entities")


@dataclass
class WikianswersConfig(SampledPairsConfig):
    """As `SampledPairsConfig`, with the form of the questions."""

    as_written: bool = option("Questions as people wrote them, from `questions.txt`, not lemmatised.", False)


class WikianswersBuilder(SampledPairsBuilder):
    """Questions that the users of WikiAnswers marked as the same, from the PARALEX release."""

    corpus_name = "wikianswers"
    BUILDER_CONFIGS = [WikianswersConfig("paper", description="20,000 questions to test on.", train_size=4_826_492)]
    files = tuple(f"{name}{end}" for name in (PAIRS_FILE, QUESTIONS_FILE) for end in ("", ".gz"))
    expected = (
        f"expected in it: {PAIRS_FILE}, plain or .gz ({'⇥'.join(PAIR_COLUMNS)}); for `as_written` also "
        f"{QUESTIONS_FILE} ({'⇥'.join(QUESTION_COLUMNS[:4])})"
    )
    origin = "they are in wikianswers-paraphrases-1.0.tar.gz of knowitall.cs.washington.edu/paralex"
    symmetric = True

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        path = self.find(PAIRS_FILE, f"{PAIRS_FILE}.gz")
        originals = self._originals(reader) if self.config.as_written else None
        unknown = 0
        for pair in reader.columns(path, PAIR_COLUMNS, PAIR_COLUMNS[:2], optional=1):
            if originals is not None:
                pair = [originals.find(lemmas) for lemmas in pair]
            # Null, which a question without an original is, compares as null and is left out with the equal ones.
            differ = pc.not_equal(*pair)
            unknown += differ.null_count
            yield tuple(questions.filter(differ) for questions in pair)
        if unknown:
            logger.warning("%d pairs left out: one of their questions is not in %s", unknown, QUESTIONS_FILE)

    def _originals(self, reader: CorpusReader) -> TextIndex:
        path = self.find(QUESTIONS_FILE, f"{QUESTIONS_FILE}.gz")
        folder: Path = self.scratch_folder()
        store = PairStore(folder)
        for lemmas, questions in reader.columns(path, QUESTION_COLUMNS, ("lemmas", "question"), optional=1):
            store.add(hash_texts(lemmas, 0), lemmas, questions)
        store.close()
        return TextIndex(store, folder / "originals")
