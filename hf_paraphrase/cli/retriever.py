"""The commands `hf-paraphrase retriever …`. What is heavy is imported inside the commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, DatasetOption, pick_split, read_corpus
from .terminal import echo

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="What finds the pairs that some models edit by.")


# Typer would make the one command of a group the group itself.
@app.callback()
def _retriever() -> None:
    pass


@app.command()
def train(
    output_dir: Annotated[Path, typer.Option(help="Where the encoder goes.")],
    dataset: DatasetOption = "quora",
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    vocab_size: Annotated[int, typer.Option(min=5, help="Most words, special tokens included.")] = 8000,
    max_length: Annotated[int, typer.Option(min=2, help="Tokens of a sentence; longer ones are cut.")] = 24,
    hidden_size: Annotated[int, typer.Option(min=1, help="Width of the vectors.")] = 128,
    num_layers: Annotated[int, typer.Option(min=0, help="Transformer layers.")] = 1,
    num_train_epochs: Annotated[float, typer.Option(help="Passes over the pairs.")] = 3,
    train_batch_size: Annotated[int, typer.Option(min=2, help="Pairs told apart at a time.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 2e-3,
    seed: Annotated[int, typer.Option(help="Seed of weights and batches.")] = 42,
) -> None:
    """Train a sentence encoder on paraphrase pairs, for a retriever that knows the task (RaE).

    \b
    hf-paraphrase retriever train --dataset quora --dataset-name clean --data-dir data/quora \\
        --output-dir runs/quora-encoder
    hf-paraphrase train --recipe rae-quora-small --data-dir data/quora --retriever-encoder runs/quora-encoder \\
        --output-dir runs/rae-quora-small

    The folder holds a model and a tokenizer, as `ParaphraseRetriever.from_pairs(pairs, encoder=…)` takes them. Printed
    is the part of the validation sources that are nearer to their own target than to any other. Needs
    sentence-transformers (`pip install 'hf-paraphrase[retrieval]'`).
    """
    from ..retrieval.encoders import AutoModelEncoder
    from ..retrieval.training import measure_recall, train_encoder

    pairs = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs).load()
    validation = pick_split(pairs, "validation")
    started = time.perf_counter()
    train_encoder(
        pick_split(pairs, "train"),
        output_dir,
        vocab_size=vocab_size,
        max_length=max_length,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_train_epochs=num_train_epochs,
        train_batch_size=train_batch_size,
        learning_rate=learning_rate,
        seed=seed,
    )
    seconds = time.perf_counter() - started
    recall = measure_recall(AutoModelEncoder(output_dir), validation)
    echo(f"{seconds:.0f} s; {100 * recall:.1f}% of {len(validation)} sources find their own target first")
