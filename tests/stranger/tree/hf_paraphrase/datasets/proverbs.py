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
    """Proverbs and what they mean: an example of a corpus of two columns.

    Source: a file of your own.

    Citation: none.

    Licence: that of your file.

    Layout: `data_dir` holds `proverbs.tsv`, plain or with `.gz`, `proverb⇥meaning` a line.

    Columns: `source` and `target`; `test` has `source` and `references`, up to five.

    Splits: a tenth of the proverbs is held out; of these come validation and test (1,000 each, of a smaller file all
    in the same proportion), and train has the pairs of the others.
    """

    corpus_name = "proverbs"
    BUILDER_CONFIGS = [ProverbsConfig(name="default", description="Proverbs and what they mean.")]
    files = ("proverbs.tsv", "proverbs.tsv.gz")
    origin = "lines of `proverb⇥meaning`"

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        columns = ("proverb", "meaning")
        yield from map(tuple, reader.columns(self.find(*self.files), columns, columns))
