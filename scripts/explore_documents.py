r"""See what an autoencoder's vectors hold: texts on the way from one document to another, and a document's neighbours.

    python scripts/explore_documents.py runs/hierarchical-autoencoder reviews.txt --steps 5 --nearest 3

The file has a document a line, whose sentences end at full stops. The first two are the ends of the way; each of the
others that are shown is followed by those nearest to it by the cosine of their vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from hf_paraphrase.analysis.document_vectors import embed_documents, interpolate_documents, nearest_documents
from hf_paraphrase.datasets.sentences import split_by_rules
from hf_paraphrase.generation.engine import load_paraphraser
from hf_paraphrase.tokenization import join_sentences


def main(
    model: Annotated[Path, typer.Argument(help="Output folder of scripts/train_autoencoder.py.")],
    documents: Annotated[Path, typer.Argument(help="Text file with a document a line.")],
    steps: Annotated[int, typer.Option(min=2, help="Texts on the way, both ends among them.")] = 5,
    nearest: Annotated[int, typer.Option(min=1, help="Neighbours of a document.")] = 3,
    shown: Annotated[int, typer.Option(min=1, help="Documents whose neighbours are shown.")] = 3,
) -> None:
    """Print both."""
    autoencoder, tokenizer = load_paraphraser(model)
    lines = [line for line in documents.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts = [join_sentences(split_by_rules(line)) for line in lines]
    for share, text in zip(
        torch.linspace(0, 1, steps).tolist(),
        interpolate_documents(autoencoder, tokenizer, *texts[:2], steps=steps),
        strict=True,
    ):
        print(f"{share:4.2f}  {' '.join(text.split())}")
    vectors = embed_documents(autoencoder, tokenizer, texts)
    for row, neighbours in enumerate(nearest_documents(vectors, nearest)[:shown]):
        print(f"\n      {lines[row]}")
        for other, cosine in neighbours:
            print(f"{cosine:4.2f}  {lines[other]}")


if __name__ == "__main__":
    typer.run(main)
