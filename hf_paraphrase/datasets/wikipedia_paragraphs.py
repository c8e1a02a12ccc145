from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .corpus_reader import CorpusReader
from .documents import DocumentBuilder, DocumentConfig

__all__ = ["WikipediaParagraphsBuilder"]

HEADING = re.compile(r"\s*(?P<level>=(?: ?=)*) .* (?P=level)\s*$")
# WikiText sets apart what stands inside words and numbers (`co @-@ star`, `1 @,@ 000`), and endings (`dog 's`).
INSIDE = re.compile(r" @([-.,])@ ")
ENDING = re.compile(r"(?<=\w) (?='(?:s|t|re|ve|ll|d|m)(?!\w))")


class WikipediaParagraphsBuilder(DocumentBuilder):
    """Paragraphs of Wikipedia as lists of sentences, chosen as in Li et al. 2015, section 4.1.

    Source: English Wikipedia. The paper's extract was not published; Reads WikiText (Merity et al. 2017) as released
    (WikiText-103 is nearest to the paper's size), or any other extract with one paragraph per line.

    Citation: Stephen Merity, Caiming Xiong, James Bradbury, Richard Socher. Pointer sentinel mixture models. ICLR
    2017. Jiwei Li, Minh-Thang Luong, Dan Jurafsky. A hierarchical neural autoencoder for paragraphs and documents.
    ACL 2015.

    Licence: CC BY-SA.

    Layout: `data_dir` holds files `*.txt`, `*.tokens` or `*.raw`, plain or gzipped, such as `wiki.train.tokens`, with
    one paragraph a line. Headings (` = Title = `) are skipped.

    Columns: `sentences`, the sentences of a paragraph in order, lower-cased and tokenised, words separated by spaces;
    hyphens and dashes inside words stay there.
    `<unk>` stays where WikiText has it, and counts as an unknown word.

    Splits: `train` (500,000 at most), `validation` (5,000) and `test` (50,000), or these proportions of what there is:
    908, 8 and 58 of the validation and test parts of WikiText-2, where many words are `<unk>`. A hash of a paragraph's
    text decides its split; that WikiText comes in three parts has no say.

    Paragraphs of 50 to 250 words with at most 4% unknown words are kept; the 120,000 most frequent words of the
    training split's paragraphs of that length are known. The other unknown words stay as they are.
    """

    corpus_name = "wikipedia_paragraphs"
    in_file_order = ("paper",)
    BUILDER_CONFIGS = [
        DocumentConfig(
            name="paper",
            description="50 to 250 words, 120,000 known, 4% unknown.",
            vocabulary_size=120_000,
            max_unknown=0.04,
            train_size=500_000,
            validation_size=5000,
            test_size=50_000,
        )
    ]
    files = tuple(f"*.{ending}{zipped}" for ending in ("txt", "tokens", "raw") for zipped in ("", ".gz"))
    expected = "expected there: *.txt, *.tokens or *.raw (or .gz), one paragraph a line, as in WikiText"
    origin = "WikiText-103 and WikiText-2 are on the Hub as Salesforce/wikitext (CC BY-SA)"
    licence_id = "cc-by-sa-4.0"

    def texts(self, reader: CorpusReader, path: Path) -> Iterator[str]:
        for _, line in reader.lines(path):
            if not HEADING.match(line):
                yield ENDING.sub("", INSIDE.sub(r"\1", line))
