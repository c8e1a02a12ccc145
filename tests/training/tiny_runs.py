"""A task and a model small enough to train in a second."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file

from hf_paraphrase.training.arguments import ParaphraseConfig
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.reporting import Reporter

WORDS = [f"w{number}" for number in range(12)]


def make_pairs(train: int = 50, validation: int = 11, seed: int = 0) -> DatasetDict:
    """Sentences of several lengths; the target has the words in reverse."""
    draw = random.Random(seed)

    def split(size: int) -> Dataset:
        rows = [draw.choices(WORDS, k=draw.randint(2, 7)) for _ in range(size)]
        return Dataset.from_dict(
            {"source": [" ".join(row) for row in rows], "target": [" ".join(reversed(row)) for row in rows]}
        )

    return DatasetDict(train=split(train), validation=split(validation))


def make_recipe(**fields: Any) -> Recipe:
    """A two-layer residual LSTM with dropout, six steps an epoch on `make_pairs()`; fields as in `Recipe.override`."""
    model = {
        "model_type": "residual_lstm",
        "vocab_size": 20,
        "embedding_size": 8,
        "hidden_size": 8,
        "num_layers": 2,
        "dropout": 0.3,
    }
    training = ParaphraseConfig(
        dataset="reversed_words",
        num_train_epochs=2,
        train_batch_size=9,
        learning_rate=0.02,
        logging_steps=2,
        disable_tqdm=True,
    )
    return Recipe("tiny", model, {"num_beams": 2, "max_new_tokens": 8}, training).override(fields)


def last_weights(output_dir: Path) -> dict[str, torch.Tensor]:
    """The weights a run ended with."""
    (checkpoint,) = output_dir.glob("checkpoints/last-*")
    return load_file(checkpoint / "model.safetensors")


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def send_after(monkeypatch, step: int, number: int = signal.SIGTERM) -> None:
    """Let this process get a signal when it has taken so many steps since now."""
    advance, taken = Reporter.advance, []

    def advance_and_send(self, *values):
        advance(self, *values)
        taken.append(values)
        if len(taken) == step:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Reporter, "advance", advance_and_send)
