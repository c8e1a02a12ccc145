from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from .corpus_reader import CorpusReader
from .sampled_pairs import SampledPairsBuilder, SampledPairsConfig


@dataclass
class ProverbsConfig(SampledPairsConfig):
    """As `SampledPairsConfig`, with a smaller test split."""

    test_size: int = 1000


class ProverbsBuilder(SampledPairsBuilder):
    """Proverbs and what they mean: an example of a corpus of two columns."""

    corpus_name = "proverbs"
    BUILDER_CONFIGS = [ProverbsConfig(name="default", description="Proverbs and what they mean.")]
    files = ("proverbs.tsv", "proverbs.tsv.gz")
    origin = "lines of `proverb⇥meaning`"

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        columns = ("proverb", "meaning")
        yield from map(tuple, reader.columns(self.find(*self.files), columns, columns))
