"""Prints PINC and cosine of a model's paraphrases at strength 0, 0.25, 0.5, 0.75 and 1.

python scripts/strengths.py texts.txt --model runs/open --encoder all-MiniLM-L6-v2

The file has a text a line. Without --model the released model writes; without --encoder there is no cosine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hf_paraphrase import Paraphraser
from hf_paraphrase.evaluation.strengths import format_strengths, measure_strengths
from hf_paraphrase.retrieval.encoders import load_encoder


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--encoder")
    given = parser.parse_args(arguments)
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    paraphraser = Paraphraser.from_pretrained(*([given.model] if given.model else []))
    encoder = load_encoder(given.encoder) if given.encoder else None
    print(format_strengths(measure_strengths(paraphraser, texts, encoder), len(texts)))


if __name__ == "__main__":
    main()
