"""The command `hf-paraphrase evaluate-matcher`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .cli_options import (
    DataDir,
    DatasetKwargs,
    DatasetName,
    EvaluatedCorpus,
    EvaluatedSplit,
    MaxSamples,
    NumSamples,
    parse_pairs,
    read_training_config,
)

__all__ = ["evaluate_matcher"]


def evaluate_matcher(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    dataset_kwargs: DatasetKwargs = None,
    data_dir: DataDir = None,
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
    from .datasets import load_dataset
    from .matching import evaluate_matcher as evaluate
    from .matching import format_matching_results

    kwargs = parse_pairs("--dataset-kwargs", dataset_kwargs or [])
    if dataset is None:
        trained_on = read_training_config(model)
        dataset, dataset_name = trained_on.dataset, dataset_name or trained_on.dataset_name
        data_dir, kwargs = data_dir or trained_on.data_dir, {**trained_on.dataset_kwargs, **kwargs}
    splits = load_dataset(dataset, name=dataset_name, data_dir=data_dir, **kwargs)
    rows = splits[split]
    if max_samples is not None:
        rows = rows.select(range(min(max_samples, len(rows))))
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
        data={"path": dataset, "name": dataset_name, "kwargs": kwargs, "max_samples": max_samples},
    )
    typer.echo(format_matching_results(results))
