"""How well language models of sentences predict a split, in nits per character, and charts of several of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.files import read_lines
from ..generation.loading import load_paraphraser
from ..metrics.nits_per_character.scoring import nits_per_character
from ..metrics.sufficient_statistics import SufficientStatistics
from ..models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from ..models.layers.precision import at_least_single
from ..training.batching import PairCollator
from ..training.tasks.language_model import encode_documents
from .results import Results, describe_data, describe_model
from .scoring import Scoring, load_given, save_results


@torch.inference_mode()
def evaluate_language_model(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    objective: str = "next_sentence",
    max_samples: int | None = None,
    batch_size: int = 64,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
) -> Results:
    """Score what follows every sentence, or the sentence itself, in nits per character.

    Args:
        model: A hierarchical language model, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `sentences`.
        objective: "next_sentence" or "autoencode", as the model was trained.
        max_samples: Maximum number of examples, evenly spaced over the documents.
        batch_size: Examples at once.
        n_samples, seed, split, data, trust_remote_code: As of `evaluate_paraphraser`.
        output_dir: Where to write `losses-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.

    Returns:
        The content of the file: one entry, with `nits_per_character`. Its rows are examples; `characters` are counted
            too.

    Raises:
        InputError: There is no example.
    """
    model, tokenizer = load_given(model, tokenizer, load_paraphraser, trust_remote_code)
    model.eval()
    rows = encode_documents(dataset, cast(HierarchicalLmTokenizer, tokenizer), objective, max_samples)
    found = describe_data(data, split, len(rows))
    collate, losses, characters = PairCollator(tokenizer.pad_token_id), [], []
    for start in range(0, len(rows), batch_size):
        part = rows.__getitems__(list(range(start, min(start + batch_size, len(rows)))))
        batch = {name: tensor.to(model.device) for name, tensor in collate(part).items()}
        logits = at_least_single(model(**batch).logits)
        losses += cross_entropy(logits.transpose(1, 2), batch["labels"], reduction="none").sum(dim=1).tolist()
        characters += [len(row["labels"]) for row in part]
    scores = Scoring(n_samples=n_samples, seed=seed).measure(nits_per_character(losses, characters).statistics)
    results = Results(
        "language_model",
        replace(found, counts={"characters": sum(characters)}),
        (describe_model(model, scores, objective=objective, outputs=output_dir and f"losses-{split}.jsonl"),),
        {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)},
    )
    rows = ({"loss": loss, "characters": count} for loss, count in zip(losses, characters, strict=True))
    return save_results(results, output_dir, losses=rows)


def format_language_model_results(results: Results) -> str:
    """The score as text."""
    (entry,) = results.of("model")
    (score,) = entry.scores
    return (
        f"{results.data.path}, split {results.data.split}, {results.data.rows:,} examples of {entry.objective}\n"
        f"nits per character: {score.score:.3f} ({score.low:.3f} to {score.high:.3f})"
    )


def read_language_model_statistics(file: Path) -> dict[str, SufficientStatistics]:
    """The statistics of the scores that `evaluate_language_model` computed, from the file of losses that it wrote."""
    rows = read_lines(file)
    return nits_per_character([row["loss"] for row in rows], [row["characters"] for row in rows]).statistics
