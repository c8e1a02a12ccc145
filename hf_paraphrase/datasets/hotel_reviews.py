from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .corpus_reader import CorpusReader
from .documents import DocumentBuilder, DocumentConfig

TAG = re.compile(r"<(?P<name>[A-Za-z][\w .]*)>(?P<value>.*)", re.DOTALL)
# Page text that the crawler included, after truncated reviews and next to photos.
RESIDUE = re.compile(r"(?:showReview\(\d+, *'full'\);|More photos)\s*$")


class HotelReviewsBuilder(DocumentBuilder):
    """Hotel reviews as lists of sentences, chosen as in Li et al. 2015, section 4.1."""

    corpus_name = "hotel_reviews"
    BUILDER_CONFIGS = [DocumentConfig(name="paper", description="50 to 250 words, 25,000 known, 2% unknown.")]
    records = ("hotel_*_parsed.txt", "*/hotel_*_parsed.txt")
    files = (*records, "*.txt", "*.txt.gz")
    expected = (
        "expected there, or in a subfolder: hotel_*_parsed.txt with lines <Author>…, <Content>…, <Date>…, <Rating>…; "
        "or *.txt or *.txt.gz with one review a line"
    )
    origin = "they are among the LARA data sets (TripAdvisor), https://www.cs.virginia.edu/~hw5x/dataset.html"

    @classmethod
    def paths(cls, data_dir: Path) -> list[Path]:
        found = super().paths(data_dir)
        return [path for path in found if path.match("hotel_*_parsed.txt")] or found

    def texts(self, reader: CorpusReader, path: Path) -> Iterator[str]:
        if path.match("hotel_*_parsed.txt"):
            texts = read_records(reader, path)
        else:
            texts = (line for _, line in reader.lines(path))
        for text in texts:
            yield RESIDUE.sub("", text)


def read_records(reader: CorpusReader, path: Path) -> Iterator[str]:
    """Yield the `<Content>` of every record; a line without a tag and a record without content are bad."""
    author = None
    for number, line in reader.lines(path):
        tag = TAG.match(line)
        if tag is None:
            if line.strip():
                reader.reject(path, number, "starts with no <Author>, <Content>, <Date> or <Rating>")
        elif tag["name"] == "Author":
            if author is not None:
                reader.reject(path, author, "is an <Author> without a <Content>")
            author = number
        elif tag["name"] == "Content":
            author = None
            yield tag["value"]
    if author is not None:
        reader.reject(path, author, "is an <Author> without a <Content>")
