"""The command `hf-paraphrase evaluate-matcher`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .corpus import (
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
from .options import NumSamples

__all__ = ["evaluate_matcher"]


def evaluate_matcher(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    threshold_split: Annotated[str, typer.Option(help="Split that chooses the threshold of F1.")] = "validation",
    max_samples: MaxSamples = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs at once.")] = 64,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 12345,
    output_dir: Annotated[Path | None, typer.Option(help="Where the predictions and results.json go.")] = None,
) -> None:
    """Label the pairs of a split, or rank its candidates, with 95% intervals and the published rows beside it.

    \b
    hf-paraphrase evaluate-matcher runs/twitter --data-dir data/twitter_url --output-dir runs/twitter/evaluation
    hf-paraphrase evaluate-matcher runs/first --dataset wikiqa --data-dir data/wikiqa --split validation
    """
    from ..evaluation.matches import evaluate_matcher as evaluate
    from ..evaluation.matches import format_matching_results

    corpus = read_evaluated_corpus(model, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    splits = corpus.load()
    rows = take_rows(splits[split], max_samples)
    results = evaluate(
        model,
        None,
        rows,
        splits.get(threshold_split),
        batch_size=batch_size,
        n_samples=n_samples,
        seed=seed,
        output_dir=output_dir,
        split=split,
        data=corpus.describe(max_samples=max_samples),
    )
    typer.echo(format_matching_results(results))
