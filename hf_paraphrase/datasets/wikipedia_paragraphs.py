from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .corpus_reader import CorpusReader
from .documents import DocumentBuilder, DocumentConfig

HEADING = re.compile(r"\s*(?P<level>=(?: ?=)*) .* (?P=level)\s*$")
# WikiText sets apart what stands inside words and numbers (`co @-@ star`, `1 @,@ 000`), and endings (`dog 's`).
INSIDE = re.compile(r" @([-.,])@ ")
ENDING = re.compile(r"(?<=\w) (?='(?:s|t|re|ve|ll|d|m)(?!\w))")


class WikipediaParagraphsBuilder(DocumentBuilder):
    """Paragraphs of Wikipedia as lists of sentences, chosen as in Li et al. 2015, section 4.1."""

    corpus_name = "wikipedia_paragraphs"
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
