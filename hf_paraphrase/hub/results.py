"""Results files as the Hub has them: `model-index` of a card, and `.eval_results/*.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..datasets.loading import is_published
from ..evaluation.results import Entry, Results, Score
from .checkpoint import Checkpoint

EVAL_RESULTS_FILE = ".eval_results/hf_paraphrase.yaml"

# Names of scores on the Hub, where it has one for several of ours.
METRIC_TYPES = {"bleu_4": "bleu", "bleu_2": "bleu"} | dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeW"), "rouge")


def label_entry(entry: Entry) -> str:
    """The name of an entry in a card."""
    return entry.label("this model" if entry.role == "model" else None)


def list_scores(entry: Entry) -> tuple[Score, ...]:
    """The scores of an entry that a card shows."""
    return (*entry.scores, *entry.diversity)


def format_score(score: Score) -> str:
    """A score, and its 95% interval where it has one."""
    interval = "" if score.low is None else f" ({score.low:.2f} to {score.high:.2f})"
    return f"{score.score:.2f}{interval}"


def make_eval_results(checkpoint: Checkpoint, dataset_id: str | None = None) -> list[EvalResult]:
    """This model's scores as the entries of a card's `model-index`.

    Args:
        checkpoint: With its results.
        dataset_id: Repository of the corpus on the Hub; by default the corpus's name here. Without one, scores on data
            that are not published have no entry.
    """
    task = "text-classification" if "Classification" in checkpoint.auto_class else "text2text-generation"
    return [
        EvalResult(
            task_type=task,
            dataset_type=cast(str, dataset_id or results.data.path),
            dataset_name=cast(str, results.data.path if is_published(results.data.path) else dataset_id),
            dataset_config=results.data.name,
            dataset_split=results.data.split,
            metric_type=METRIC_TYPES.get(score.metric, score.metric),
            metric_name=f"{score.metric}, {entry.decoding.label}" if entry.decoding else score.metric,
            metric_value=round(score.score, 2),
            metric_args={
                **({} if score.interval is None else {"interval_95": [round(bound, 2) for bound in score.interval]}),
                **({"signature": score.signature} if score.signature else {}),
            }
            or None,
        )
        for results, entry, score in _own_scores(checkpoint, dataset_id)
    ]


def make_eval_results_yaml(checkpoint: Checkpoint, dataset_id: str | None = None) -> str:
    """The entries of `make_eval_results` as the text of a file in `.eval_results/`; empty without an entry."""
    entries = []
    for results, entry, score in _own_scores(checkpoint, dataset_id):
        interval = None if score.low is None else f"95% interval {score.low:.2f} to {score.high:.2f}"
        notes = [f"split {results.data.split}, {results.data.rows} rows", interval, score.signature]
        entries.append(
            EvalResultEntry(
                dataset_id=cast(str, dataset_id or results.data.path),
                task_id=f"{score.metric}_{entry.decoding.identifier}" if entry.decoding else score.metric,
                value=round(score.score, 2),
                date=results.environment.get("date"),
                notes="; ".join(note for note in notes if note),
            )
        )
    if not entries:
        return ""
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=119)


def _own_scores(checkpoint: Checkpoint, dataset_id: str | None) -> Iterator[tuple[Results, Entry, Score]]:
    for results in checkpoint.results.values():
        if dataset_id is not None or is_published(results.data.path):
            for entry in results.of("model"):
                for score in list_scores(entry):
                    yield results, entry, score
