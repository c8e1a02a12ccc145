r"""Score what autoencoders of documents write, the paper's figures and two baselines beside it:

    python scripts/evaluate_autoencoder.py runs/hierarchical-autoencoder --data-dir data/hotel_reviews

Several runs at once also give one plot of exact reconstructions by length:

    python scripts/evaluate_autoencoder.py runs/standard runs/hierarchical runs/attention \
        --data-dir data/hotel_reviews --plot reconstruction.png

By default the documents are those of each run's own corpus; its outputs and results go to RUN/evaluation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.cli.corpus import (
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    EvaluatedCorpus,
    EvaluatedSplit,
    MaxSamples,
    read_evaluated_corpus,
    take_rows,
)
from hf_paraphrase.evaluation.documents import evaluate_autoencoder, format_document_results, plot_reconstruction
from hf_paraphrase.generation.engine import load_paraphraser


def main(
    runs: Annotated[list[Path], typer.Argument(help="Output folders of scripts/train_autoencoder.py.")],
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: MaxSamples = None,
    num_beams: Annotated[int, typer.Option(min=1, help="Beam width; the paper's is 1, greedy.")] = 1,
    batch_size: Annotated[int, typer.Option(min=1, help="Documents at once.")] = 32,
    n_samples: Annotated[int, typer.Option(min=2, help="Resampled corpora for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals and the shuffled baseline.")] = 12345,
    plot: Annotated[Path | None, typer.Option(help="PNG of exact reconstructions by length.")] = None,
) -> None:
    """Evaluate runs one after the other."""
    results = {}
    for run in runs:
        corpus = read_evaluated_corpus(str(run), dataset, dataset_name, data_dir, data_files, dataset_kwargs)
        rows = take_rows(corpus.load(split), max_samples)
        model, tokenizer = load_paraphraser(run)
        results[run.name] = evaluate_autoencoder(
            model,
            tokenizer,
            rows,
            batch_size=batch_size,
            n_samples=n_samples,
            seed=seed,
            output_dir=run / "evaluation",
            split=split,
            data=corpus.describe(),
            num_beams=num_beams,
        )
        print(format_document_results(results[run.name]), flush=True)
    if plot is not None:
        plot_reconstruction(results, plot)


if __name__ == "__main__":
    typer.run(main)
