from __future__ import annotations

from .corpus_reader import CorpusReader
from .sentence_pairs import Pair, SentencePairsBuilder, SentencePairsConfig

TRAIN_FILE, TEST_FILE = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
COLUMNS = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


class MsrpBuilder(SentencePairsBuilder):
    """Sentence pairs from the news with judgements whether they are paraphrases: the MSR Paraphrase Corpus."""

    corpus_name = "msrp"
    BUILDER_CONFIGS = [
        SentencePairsConfig(name="pairs", description="All pairs with labels.", validation_size=400),
        SentencePairsConfig(name="paraphrases", description="The pairs that are paraphrases.", validation_size=400),
    ]
    files = (TRAIN_FILE, TEST_FILE)
    origin = "both are in the Microsoft Research Paraphrase Corpus, microsoft.com/en-us/download/details.aspx?id=52398"

    def read_splits(self, reader: CorpusReader) -> dict[str, list[Pair]]:
        texts = ("#1 String", "#2 String")
        train, test = (self.read_labelled(reader, name, "Quality", COLUMNS, texts) for name in self.files)
        return self.divide_files(train, test)
