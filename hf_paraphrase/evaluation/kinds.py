"""The kind of a model, which decides how it is evaluated."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..checkpoints.pretrained import load_config
from ..models.layers.portable import can
from ..training.arguments import TrainingConfig
from .documents import evaluate_autoencoder, format_document_results
from .language_models import evaluate_language_model, format_language_model_results
from .matches import evaluate_matcher, format_matching_results
from .paraphrases import evaluate_paraphraser, format_results
from .results import Results

# What evaluates a model, by its kind.
EVALUATORS: dict[str, Callable[..., Results]] = {
    "paraphraser": evaluate_paraphraser,
    "matcher": evaluate_matcher,
    "autoencoder": evaluate_autoencoder,
    "language model": evaluate_language_model,
}
# What makes text of results, by their `kind`.
FORMATS: dict[str, Callable[[Results], str]] = {
    "paraphrases": format_results,
    "matches": format_matching_results,
    "documents": format_document_results,
    "language_model": format_language_model_results,
}
# By ability; all other models are paraphrasers.
KINDS = {"labels_pairs": "matcher", "embeds_sentences": "language model", "rewrites_documents": "autoencoder"}
# Any sequence-to-sequence model may have learnt these.
KINDS_OF_TASKS = {"match": "matcher", "autoencode": "autoencoder", "language_model": "language model"}


def find_kind(model: str | os.PathLike, trained_by: TrainingConfig | None, trust_remote_code: bool = False) -> str:
    """The kind of a model, by its abilities or, if known, its training task.

    Args:
        model: Checkpoint folder or Hub repository.
        trained_by: How it was trained, if known.
        trust_remote_code: Let the model's own code run.
    """
    if os.fspath(model).endswith(".gguf"):
        return "paraphraser"
    config = load_config(model, trust_remote_code)
    kind = next((kind for ability, kind in KINDS.items() if can(config, ability)), "paraphraser")
    return kind if trained_by is None else KINDS_OF_TASKS.get(trained_by.task, kind)
