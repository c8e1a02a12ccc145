from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import datasets

from .reader import CorpusReader
from .sentence_pairs import LI2018_FILES, Pair, SentencePairsBuilder, SentencePairsConfig

__all__ = ["QuoraBuilder", "QuoraConfig"]

FILE = "quora_duplicate_questions.tsv"
COLUMNS = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")


@dataclass
class QuoraConfig(SentencePairsConfig):
    """As `SentencePairsConfig`, with the sizes of Li et al. 2018."""

    train_size: int | None = 100_000
    validation_size: int = 3000
    test_size: int | None = 30_000
    max_words: int | None = 20


class QuoraBuilder(SentencePairsBuilder):
    """Quora's question pairs: duplicates as paraphrases, or all pairs with their labels.

    Source: `quora_duplicate_questions.tsv`, First Quora Dataset Release: Question Pairs, of quoradata.quora.com
    (about 404,000 pairs, 149,000 of them duplicates).

    Citation: Iyer, Dandekar and Csernai 2017, First Quora Dataset Release: Question Pairs. The sampling: Li et al.
    2018, Paraphrase Generation with Deep Reinforcement Learning, and Kazemnejad et al. 2020, Paraphrase Generation by
    Learning How to Edit from Samples, section 4.1.

    Licence: Quora's terms of service; for non-commercial use.

    Layout: `data_dir` holds `quora_duplicate_questions.tsv`, with a header and the columns id, qid1, qid2, question1,
    question2, is_duplicate. For `li2018` it, or its subfolder `li2018_split`, holds `train.tsv`, `val.tsv` and
    `test.tsv`, `source⇥target` a line without a header.

    Columns: `source` and `target`; `test` has `source` and `references`, a list of one. `pairs` has `sentence1`,
    `sentence2` and `label` (not_paraphrase, paraphrase). The test rows of `li2018` have `in_train` too.

    Splits: 100,000 train, 3,000 validation, 30,000 test of the release's duplicates, at random; `pairs` has 10,000
    validation, 10,000 test and all others in train. Of a smaller file, validation and test get at most a quarter, in
    the same proportion. Sentences are cut to 20 words, as in the paper, except in `pairs`. A pair that stands there
    twice, in either order or in other capitals, is one, so no test pair is in train. A question may be: see `clean`.

    Configurations: `paraphrases` as above. `clean` divides the same pairs by groups of questions linked by
    duplicates, so that no question of a test or validation pair stands in train. `pairs` keeps all pairs and labels.
    `li2018` reads the split that many papers share, in which most test pairs stand in train as well: `in_train` says
    of each test pair whether it does, in either order. Say which of these a figure is for.
    """

    BUILDER_CONFIG_CLASS = QuoraConfig
    BUILDER_CONFIGS = [
        QuoraConfig(name="paraphrases", description="Duplicates, divided at random."),
        QuoraConfig(name="clean", description="Duplicates, divided so that splits share no question."),
        QuoraConfig(
            name="pairs",
            description="All pairs with labels.",
            train_size=None,
            validation_size=10_000,
            test_size=10_000,
            max_words=None,
        ),
        QuoraConfig(name="li2018", description="An existing split, whose test rows say whether they stand in train."),
    ]
    DEFAULT_CONFIG_NAME = "paraphrases"
    files = (FILE, *(name for names in LI2018_FILES.values() for name in names))
    origin = f"{FILE} is the First Quora Dataset Release of quoradata.quora.com (Quora's terms, non-commercial)"

    def layout(self) -> str:
        if self.existing:
            return "expected there, or in its subfolder li2018_split: train.tsv, val.tsv, test.tsv (source⇥target)"
        return f"expected in it: {FILE} ({'⇥'.join(COLUMNS)}); {self.origin}"

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        with self.reader() as reader:
            if self.existing:
                splits = self.read_existing(reader)
            else:
                splits = self.divide(self._read(reader), linked=self.config.name == "clean")
        return self.generators(splits)

    def _read(self, reader: CorpusReader) -> Iterator[Pair]:
        path = self.find(FILE)
        rows = self.texts(reader, path, COLUMNS, ("question1", "question2"), header=True, quoted=True)
        for number, (*_, first, second, label) in rows:
            if label in ("0", "1"):
                yield first, second, int(label)
            else:
                reader.reject(path, number, f"has is_duplicate {label[:20]!r}, not 0 or 1")
