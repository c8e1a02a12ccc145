"""Results files as the Hub has them: `model-index` of a card, and `.eval_results/*.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..datasets.loading import is_published
from ..evaluation.notes import count_pairs
from .checkpoint import Checkpoint, name_decoding

__all__ = [
    "EVAL_RESULTS_FILE",
    "METRIC_TYPES",
    "ResultRow",
    "format_score",
    "list_systems",
    "make_eval_results",
    "make_eval_results_yaml",
]

EVAL_RESULTS_FILE = ".eval_results/hf_paraphrase.yaml"

BASELINES = {
    "copy_source": "the source, copied",
    "first_reference": "first reference, against the source and the other references",
    "copy": "the document, copied",
    "shuffled": "its sentences in random order",
}
# Names of scores on the Hub, where it has one for several of ours.
METRIC_TYPES = {"bleu_4": "bleu", "bleu_2": "bleu"} | dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeW"), "rouge")


class ResultRow(NamedTuple):
    """One row of a table of results.

    Attributes:
        label: Which system, how it decoded.
        scores: For each metric a dict with `score`, and `low`, `high` and `signature` where they are known.
        decoding: What is appended to a metric's name to tell this model's decodings apart; None for other systems.
    """

    label: str
    scores: dict[str, dict[str, Any]]
    decoding: str | None = None


def list_systems(results: dict[str, Any]) -> list[ResultRow]:
    """This model with each of its decodings, the baselines, and the rows of the paper.

    Args:
        results: What `results-SPLIT.json` holds: the scores of a paraphraser stand in `generation`, for each decoding,
            those of a matcher in `scores`, those of an autoencoder in `systems`, with its baselines.
    """
    systems = [_decoded(entry) for entry in results.get("generation", [])]
    if "scores" in results:
        systems.append(ResultRow("this model", _by_metric(results["scores"]), ""))
    for name, scores in results.get("systems", {}).items():
        if name == "model":
            signatures = results["signatures"]
            signed = {metric: score | {"signature": signatures[metric]} for metric, score in scores.items()}
            systems.append(ResultRow("this model", signed, ""))
        else:
            systems.append(ResultRow(BASELINES.get(name, name), scores))
    for name, rows in results.get("baselines", {}).items():
        systems.append(ResultRow(BASELINES.get(name, name.replace("_", " ")), _by_metric(rows)))
    for row in results.get("paper", []):
        label = row["model"] if row.get("num_beams") is None else f"{row['model']}, beam {row['num_beams']}"
        systems.append(ResultRow(label, {metric: {"score": score} for metric, score in row["scores"].items()}))
    return systems


def _decoded(entry: dict[str, Any]) -> ResultRow:
    """This model with one of its decodings: a search and its width, of a model that edits the pairs a row."""
    search, width = name_decoding(entry), entry["num_beams"]
    label, decoding = f"this model, {search} {width}", f"{search}{width}"
    if "num_neighbors" in entry:
        number = entry["num_neighbors"]
        label, decoding = f"{label}, {count_pairs(number)}", f"{decoding}_pairs{number}"
    if "num_candidates" in entry.get("decoding", {}):
        label += ", by {select} of {num_candidates}".format_map(entry["decoding"])
    diversity = dict(entry.get("self_bleu", {}))
    signature = diversity.pop("signature", None)
    diversity = {name: {"score": score, "signature": signature} for name, score in diversity.items()}
    return ResultRow(label, _by_metric(entry["scores"]) | diversity, decoding)


def format_score(score: dict[str, Any]) -> str:
    """A score, and its 95% interval where it has one."""
    interval = f" ({score['low']:.2f} to {score['high']:.2f})" if "low" in score else ""
    return f"{score['score']:.2f}{interval}"


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
            dataset_type=dataset_id or data["path"],
            dataset_name=data["path"] if is_published(data["path"]) else dataset_id,
            dataset_config=data.get("name"),
            dataset_split=data["split"],
            metric_type=METRIC_TYPES.get(metric, metric),
            metric_name=f"{metric}, {system.label.removeprefix('this model, ')}" if system.decoding else metric,
            metric_value=round(score["score"], 2),
            metric_args=_describe_score(score) or None,
        )
        for data, system, metric, score in _own_scores(checkpoint, dataset_id)
    ]


def make_eval_results_yaml(checkpoint: Checkpoint, dataset_id: str | None = None) -> str:
    """This model's scores as the text of a file in `.eval_results/`, with the entries of `make_eval_results`.

    Args:
        checkpoint: With its results.
        dataset_id: Repository of the corpus on the Hub; by default the corpus's name here.

    Returns:
        The text; empty without an entry.
    """
    entries = []
    for data, system, metric, score in _own_scores(checkpoint, dataset_id):
        notes = [f"split {data['split']}, {data['rows']} rows"]
        if "low" in score:
            notes.append(f"95% interval {score['low']:.2f} to {score['high']:.2f}")
        if "signature" in score:
            notes.append(score["signature"])
        environment = checkpoint.results[data["split"]].get("environment", {})
        entries.append(
            EvalResultEntry(
                dataset_id=dataset_id or data["path"],
                task_id="_".join(part for part in (metric, system.decoding) if part),
                value=round(score["score"], 2),
                date=environment.get("date"),
                notes="; ".join(notes),
            )
        )
    if not entries:
        return ""
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=119)


def _own_scores(
    checkpoint: Checkpoint, dataset_id: str | None
) -> Iterator[tuple[dict[str, Any], ResultRow, str, dict[str, Any]]]:
    for results in checkpoint.results.values():
        if dataset_id is None and not is_published(results["data"]["path"]):
            continue
        for system in list_systems(results):
            if system.decoding is not None:
                for metric, score in system.scores.items():
                    yield results["data"], system, metric, score


def _describe_score(score: dict[str, Any]) -> dict[str, Any]:
    interval = {"interval_95": [round(score["low"], 2), round(score["high"], 2)]} if "low" in score else {}
    return interval | ({"signature": score["signature"]} if "signature" in score else {})


def _by_metric(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in rows}
