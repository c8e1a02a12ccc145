r"""Draw t-SNE maps of a hierarchical language model's words and sentences (Traynor 2018, figures 4.1 to 4.10):

    python scripts/map_embeddings.py runs/sarah-lm --data-dir data/gutenberg --output-dir runs/sarah-lm/maps \
        --near-word wizard --near-sentence "The rain was a little heavier and the wind had become noisy."

It writes `words` and `sentences`, and the neighbourhoods asked for, each as a picture (.png) and as a page to look
around in (.html). The words are the commonest of the corpus's train split, the sentences drawn from it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hf_paraphrase.analysis.maps import draw_map, nearest, project, write_map_page
from hf_paraphrase.cli.corpus import (
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    DatasetOption,
    read_corpus,
    take_rows,
)
from hf_paraphrase.datasets.running_text import fit_sentences
from hf_paraphrase.generation.engine import load_paraphraser


def main(
    model: Annotated[Path, typer.Argument(help="Output folder of scripts/train_language_model.py.")],
    output_dir: Annotated[Path, typer.Option(help="Where the maps go.")],
    dataset: DatasetOption = "gutenberg",
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    max_documents: Annotated[int | None, typer.Option(min=1, help="Only the first documents.")] = None,
    num_words: Annotated[int, typer.Option(min=4, help="Commonest words.")] = 20_000,
    num_sentences: Annotated[int, typer.Option(min=4, help="Sentences, drawn at random.")] = 100_000,
    near_word: Annotated[list[str] | None, typer.Option(help="Also map the words nearest to it; repeatable.")] = None,
    near_sentence: Annotated[list[str] | None, typer.Option(help="The same of sentences; repeatable.")] = None,
    num_nearest: Annotated[int, typer.Option(min=4, help="Points of such a neighbourhood.")] = 50,
    perplexity: Annotated[float, typer.Option(help="About how many neighbours of a point count.")] = 30.0,
    seed: Annotated[int, typer.Option(help="Of the choice of sentences and of t-SNE.")] = 0,
) -> None:
    """Draw the maps."""
    embedder, tokenizer = load_paraphraser(model)
    corpus = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    documents = take_rows(corpus.load("train"), max_documents)
    counts: Counter[str] = Counter()
    sentences: set[str] = set()
    for words in sentences_of(documents):
        counts.update(words)
        sentences.add(" ".join(words))
    words = [word for word, _ in counts.most_common(num_words)]
    texts = random.Random(seed).sample(sorted(sentences), min(num_sentences, len(sentences)))
    output_dir.mkdir(parents=True, exist_ok=True)
    kinds = {
        "words": (words, near_word or [], embedder.word_embeddings),
        "sentences": (texts, near_sentence or [], embedder.sentence_embeddings),
    }
    for name, (labels, centers, embed) in kinds.items():
        vectors = embed(labels, tokenizer).cpu().numpy()
        draw(output_dir / name, labels, vectors, f"{len(labels):,} {name}", perplexity, seed)
        for number, center in enumerate(centers, 1):
            vector = embed([center], tokenizer).cpu().numpy()
            rows = [row for row in nearest(vectors, vector, num_nearest + 1) if labels[row] != center][:num_nearest]
            near = [center, *(labels[row] for row in rows)]
            file = output_dir / f"{name}-near-{number}"
            draw(file, near, np.concatenate((vector, vectors[rows])), f"near: {center}", perplexity, seed, 0)
            print(f"{center}\n  " + "\n  ".join(near[1:11]))


def sentences_of(documents) -> Iterator[list[str]]:
    for document in documents:
        yield from fit_sentences(document["sentences"])


def draw(
    file: Path,
    labels: list[str],
    vectors: np.ndarray,
    title: str,
    perplexity: float,
    seed: int,
    center: int | None = None,
) -> None:
    """Project, and write both files."""
    points = project(vectors, perplexity, seed)
    draw_map(points, labels, file.with_suffix(".png"), title, center)
    write_map_page(points, labels, file.with_suffix(".html"), title)
    print(f"wrote {file}.png and {file}.html", flush=True)


if __name__ == "__main__":
    typer.run(main)
