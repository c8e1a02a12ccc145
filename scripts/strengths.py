"""Prints PINC and cosine of a model's paraphrases at strength 0, 0.25, 0.5, 0.75 and 1.

python scripts/strengths.py texts.txt --model runs/open --encoder all-MiniLM-L6-v2

The file has a text a line. Without --model the released model writes; without --encoder there is no cosine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.selection import score_by_embedding
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.retrieval.encoders import load_encoder

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


class StrengthRow(NamedTuple):
    """What one strength gives. PINC, 0 to 100, and cosine are means over answered texts, None where none is."""

    strength: float
    answered: int
    pinc: float | None
    cosine: float | None


def measure_strengths(
    paraphraser: Paraphraser,
    texts: Sequence[str],
    encoder: Callable[[list[str]], Any] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    **options: Any,
) -> list[StrengthRow]:
    """Paraphrase all texts at each strength, and score the first paraphrase of each.

    Args:
        paraphraser: Writes the paraphrases.
        texts: At least one.
        encoder: Makes unit sentence vectors for the cosine; None to leave it out.
        strengths: From 0 to 1.
        options: Arguments of the paraphraser's call.
    """
    if not texts:
        raise InputError("`texts`: there are none to paraphrase")
    rows = []
    for strength in strengths:
        found = paraphraser(list(texts), n=1, strength=strength, **options)
        pairs = [(text, some[0].text) for text, some in zip(texts, found, strict=True) if some]
        rows.append(StrengthRow(strength, len(pairs), *_score(pairs, encoder)))
    return rows


def _score(pairs: list[tuple[str, str]], encoder: Callable | None) -> tuple[float | None, float | None]:
    if not pairs:
        return None, None
    sources, outputs = map(list, zip(*pairs, strict=True))
    novelty = pinc(outputs, sources, lowercase=True)["score"]
    if encoder is None:
        return novelty, None
    cosines = score_by_embedding(sources, [[output] for output in outputs], encoder)
    return novelty, sum(cosine for (cosine,) in cosines) / len(cosines)


def format_strengths(rows: Sequence[StrengthRow], count: int) -> str:
    """Write the rows as a Markdown table."""
    lines = ["| strength | answered | PINC | cosine |", "|--:|--:|--:|--:|"]
    for row in rows:
        novelty = "–" if row.pinc is None else f"{row.pinc:.1f}"
        cosine = "–" if row.cosine is None else f"{row.cosine:.3f}"
        lines.append(f"| {row.strength:g} | {row.answered} of {count} | {novelty} | {cosine} |")
    return "\n".join(lines)


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
