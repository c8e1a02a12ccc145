r"""Write candidates of paraphrases without any example pair, the nearest first (Traynor 2018, table 4.3):

    python scripts/rank_paraphrases.py runs/sarah-lm-paraphrase sentences.txt --output candidates.jsonl

The model is one of the training stage `objective: autoencode`; the file has a sentence a line. Candidates that are the
sentence itself are marked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.files import write_text
from hf_paraphrase.generation.engine import load_paraphraser


def main(
    model: Annotated[Path, typer.Argument(help="Output folder of scripts/train_language_model.py.")],
    sentences: Annotated[Path, typer.Argument(help="Text file with a sentence a line.")],
    num_candidates: Annotated[int, typer.Option(min=1, help="Candidates of each sentence.")] = 40,
    temperature: Annotated[str, typer.Option(help="A number, or uniform, for U(0, 1).")] = "uniform",
    noise: Annotated[str, typer.Option(help="Weight of the noise: a number, or uniform.")] = "uniform",
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    shown: Annotated[int, typer.Option(min=1, help="Candidates that are printed.")] = 8,
    output: Annotated[Path | None, typer.Option(help="JSON Lines file of all candidates.")] = None,
) -> None:
    """Print the nearest, and write all."""
    paraphraser, tokenizer = load_paraphraser(model)
    texts = [line.strip() for line in sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
    drawn = [value if value == "uniform" else float(value) for value in (temperature, noise)]
    groups = paraphraser.paraphrase(texts, tokenizer, num_candidates, *drawn, seed=seed)
    for text, group in zip(texts, groups, strict=True):
        print(f"\n       {text}")
        for candidate in group[:shown]:
            print(f"{candidate.distance:6.3f} {candidate.text}{' (copy)' if candidate.is_copy else ''}")
    if output is not None:
        rows = (
            {"text": text, "candidates": [candidate._asdict() for candidate in group]}
            for text, group in zip(texts, groups, strict=True)
        )
        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    typer.run(main)
