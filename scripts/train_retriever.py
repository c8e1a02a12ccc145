r"""Train a sentence encoder on paraphrase pairs, for a retriever that knows the task (RaE):

    python scripts/train_retriever.py --dataset quora --dataset-name clean --data-dir data/quora \
        --output-dir runs/quora-encoder
    python scripts/train_paraphraser.py --recipe hub_configs/rae-quora-small --data-dir data/quora \
        --retriever-encoder runs/quora-encoder --output-dir runs/rae-quora-small

The folder holds a model and a tokenizer, as `ParaphraseRetriever.from_pairs(pairs, encoder=…)` takes them. It prints
the part of the validation sources that are nearer to their own target than to any other. Needs sentence-transformers
(`pip install 'hf-paraphrase[retrieval]'`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.cli.corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, DatasetOption, read_corpus
from hf_paraphrase.retrieval.encoders import AutoModelEncoder
from hf_paraphrase.retrieval.training import measure_recall, train_encoder


def main(
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
    """Train an encoder, and say how well it finds the paraphrases of the validation split."""
    pairs = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs).load()
    started = time.perf_counter()
    train_encoder(
        pairs["train"],
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
    recall = measure_recall(AutoModelEncoder(output_dir), pairs["validation"])
    print(f"{seconds:.0f} s; {100 * recall:.1f}% of {len(pairs['validation'])} sources find their own target first")


if __name__ == "__main__":
    typer.run(main)
