from __future__ import annotations

import json
from typing import Any

from ..errors import InputError
from ..evaluation.results import Results
from .checkpoint import Checkpoint
from .results import format_score, label_entry, list_scores

__all__ = ["describe_checkpoint"]

# transformers' bookkeeping, and what other lines say.
NOTED = {"architectures", "auto_map", "custom_pipelines", "dtype", "model_type", "transformers_version"}


def describe_checkpoint(checkpoint: Checkpoint) -> str:
    """The description of a checkpoint, as lines for a terminal."""
    own = {name: value for name, value in checkpoint.config.items() if name not in NOTED}
    try:
        training = [] if checkpoint.summary is None else _describe_run(checkpoint.summary)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"training_summary.json was not written by a training: {error!r}"
        raise InputError(f"{checkpoint.name}: {problem}") from error
    sections = {
        checkpoint.name: _architecture(checkpoint),
        "configuration": [f"{name}: {json.dumps(value)}" for name, value in own.items()],
        "training": training,
        **{f"results, split {split}": _results(found) for split, found in checkpoint.results.items()},
    }
    return "\n\n".join(
        "\n".join([title, *(f"  {line}" for line in lines or ["not recorded"])]) for title, lines in sections.items()
    )


def _architecture(checkpoint: Checkpoint) -> list[str]:
    weights = ", ".join(f"{count:,} {dtype}" for dtype, count in checkpoint.parameters.items())
    code = sorted(path for path in checkpoint.sizes if path.endswith(".py") and "/" not in path)
    total = sum(size for path, size in checkpoint.sizes.items() if path.endswith(".safetensors"))
    return [
        f"architecture: {checkpoint.model_type}, {', '.join(checkpoint.config.get('architectures') or [])}",
        f"loaded by: {checkpoint.auto_class}",
        f"parameters: {checkpoint.num_parameters:,} ({weights}; {total / 2**20:,.1f} MiB)",
        f"words: {checkpoint.config.get('vocab_size') or 0:,}",
        f"own code: {', '.join(code) or 'none'}",
        f"retriever: {'yes' if checkpoint.has_retriever else 'no'}",
    ]


def _describe_run(summary: dict[str, Any]) -> list[str]:
    training, found = summary["recipe"]["training"], summary["environment"]
    data = f"{training['dataset']}, configuration {training['dataset_name'] or 'default'}"
    if mixture := summary.get("mixture"):
        data = ", ".join(f"{corpus['share']:.1%} {corpus['name']} ({corpus['licence']})" for corpus in mixture)
    return [
        f"recipe: {summary['recipe']['name']}",
        f"data: {data}; {summary['train_pairs']:,} rows",
        f"steps: {summary['steps']:,}, {summary['epochs']:.4g} epochs, {summary['seconds'] / 3600:.2f} hours",
        "best: " + ", ".join(f"{name} {value:.5g}" for name, value in summary["best"].items() if name != "seconds"),
        f"on: {found['device']} ({found['device_name']}), {found['date']}, commit {found['commit'] or 'unknown'}",
    ]


def _results(found: Results) -> list[str]:
    lines = [f"{found.data.path or 'data'}, {found.data.rows:,} rows"]
    for entry in found.entries:
        figures = [f"{score.metric} {format_score(score)}" for score in list_scores(entry)]
        lines.append(f"{label_entry(entry)}: {', '.join(figures)}")
    return lines
