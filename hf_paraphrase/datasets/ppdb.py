from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..common.fields import option
from .addresses import RELEASES, Release
from .corpus_reader import CorpusReader
from .sampled_pairs import SampledPairsBuilder, SampledPairsConfig

SIZES = ("s", "m", "l", "xl", "xxl", "xxxl")
PARTS = ("lexical", "phrasal", "all")
COLUMNS = ("LHS", "phrase", "paraphrase", "features", "alignment", "entailment")
# Digits, and the slots of syntactic entries, such as [NP,1].
LEFT_OUT = r"\p{Nd}|\[[^\s\]]+\]"


@dataclass
class PpdbConfig(SampledPairsConfig):
    """Which file to read, and how its pairs become splits."""

    size: Literal["s", "m", "l", "xl", "xxl", "xxxl"] | None = option(
        "The size of the pack, s to xxxl; None takes the largest in the folder, and downloads l.", None
    )
    part: Literal["lexical", "phrasal", "all"] | None = option(
        "lexical, phrasal or all; None reads all available parts of one size, or downloads all.", None
    )


class PpdbBuilder(SampledPairsBuilder):
    """Words and phrases with the same meaning: the Paraphrase Database, PPDB 2.0, English."""

    corpus_name = "ppdb"
    BUILDER_CONFIGS = [PpdbConfig(name="paper", description="90% of the phrases to train on, 20,000 to test on.")]
    files = tuple(f"ppdb-2.0-{size}-{part}{end}" for size in SIZES for part in PARTS for end in ("", ".gz"))
    origin = "the packs are on paraphrase.org (CC BY 3.0)"
    licence_id = "cc-by-3.0"

    def release(self) -> Release:
        return RELEASES[self.corpus_name].fill({"size": self.config.size or "l", "part": self.config.part or "all"})

    def layout(self) -> str:
        size, part = self.config.size or "SIZE", self.config.part or "PART"
        return (
            f"expected in it: ppdb-2.0-{size}-{part} or ppdb-2.0-{size}-{part}.gz (SIZE: {', '.join(SIZES)}; PART: "
            f"{', '.join(PARTS)}), lines of {' ||| '.join(COLUMNS)}; {self.origin}"
        )

    def read_pairs(self, reader: CorpusReader) -> Iterator[tuple[pa.Array, pa.Array]]:
        for name in self._chosen():
            for pair in reader.columns(self.data_dir / name, COLUMNS, ("phrase", "paraphrase"), " ||| "):
                left_out = pc.equal(*pair)
                for phrases in pair:
                    left_out = pc.or_(left_out, pc.match_substring_regex(phrases, LEFT_OUT))
                keep = pc.invert(left_out)
                yield tuple(phrases.filter(keep) for phrases in pair)

    def _chosen(self) -> list[str]:
        """The names of the files: one size, and `all` instead of its parts."""
        for size in (self.config.size,) if self.config.size else reversed(SIZES):
            there: dict[str, str] = {}
            for part in (self.config.part,) if self.config.part else PARTS:
                names = (f"ppdb-2.0-{size}-{part}", f"ppdb-2.0-{size}-{part}.gz")
                found = [name for name in names if (self.data_dir / name).is_file()]
                there |= {part: found[0]} if found else {}
            if there:
                return [there["all"]] if "all" in there else list(there.values())
        raise FileNotFoundError(f"no such file in {self.data_dir}; {self.layout()}")
