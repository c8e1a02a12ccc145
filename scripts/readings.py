"""Counts how many first paraphrases a reader accepted, of texts whose candidates were read once.

python scripts/readings.py model_cards/paraphraser-en-small/readings.tsv --fluency HuggingFaceTB/SmolLM2-135M-Instruct

The file has a header and the columns text, paraphrase and good (1 or 0): whether it means the same and reads well.
What nobody has read is printed; read it, and add a line.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError

LEAST_NOVELTY = 0.3  # from which a paraphrase counts as different


class Count(NamedTuple):
    """What the first paraphrases of the texts are; `novel` are the good ones that differ."""

    texts: int
    good: int
    novel: int
    bad: int
    unread: list[tuple[str, str]]


def read_verdicts(path: Path) -> dict[tuple[str, str], bool]:
    """The verdict on each pair of text and paraphrase; raises InputError for a line that has none."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 2):
        if row.get("good") not in ("0", "1"):
            raise InputError(f"{path}, line {number}: the columns are text, paraphrase and good, which is 0 or 1")
    return {(row["text"], row["paraphrase"]): row["good"] == "1" for row in rows}


def count_good(paraphraser: Paraphraser, verdicts: Mapping[tuple[str, str], bool], fluency: str | None) -> Count:
    """Paraphrase every text once and look the first paraphrase up."""
    texts = list(dict.fromkeys(text for text, _ in verdicts))
    found = paraphraser(texts, n=1, fluency=fluency)
    first = [(text, group[0]) for text, group in zip(texts, found, strict=True) if group]
    good = [one for text, one in first if verdicts.get((text, one.text))]
    unread = [(text, one.text) for text, one in first if (text, one.text) not in verdicts]
    novel = sum((one.novelty or 0) >= LEAST_NOVELTY for one in good)
    return Count(len(texts), len(good), novel, len(first) - len(good) - len(unread), unread)


def main() -> None:
    """Print what came out, and what is still to be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readings", type=Path, help="tab-separated file")
    parser.add_argument("--model", help="a paraphraser; by default the released model")
    parser.add_argument("--fluency", help="causal language model that judges fluency; by default the model itself")
    asked = parser.parse_args()
    try:
        verdicts = read_verdicts(asked.readings)
        paraphraser = Paraphraser.from_pretrained(asked.model) if asked.model else Paraphraser()
        count = count_good(paraphraser, verdicts, asked.fluency)
    except (InputError, OSError) as error:
        parser.exit(1, f"error: {error}\n")
    print(f"of {count.texts} texts: {count.good} good, {count.novel} of which differ; {count.bad} bad")
    for text, paraphrase in count.unread:
        print(f"not read: {text}\t{paraphrase}")


if __name__ == "__main__":
    main()
