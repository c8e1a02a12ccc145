"""Label or score the pairs of a split, evaluate the predictions, and write the files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.files import read_lines
from ..generation.engine import match_pairs
from ..generation.loading import load_pair_model
from ..metrics.classification.scoring import classification
from ..metrics.ranking.scoring import ranking
from ..metrics.sufficient_statistics import SufficientStatistics
from ..models.text.candidate_selection import jaccard_similarity
from ..papers import find_matching_rows
from .results import Entry, Results, Speed, describe_data, describe_model, describe_papers, format_scores
from .scoring import Scoring, load_given, save_results

OVERLAP = "overlap of words"


def evaluate_matcher(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    validation: Dataset | None = None,
    *,
    batch_size: int = 64,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
) -> Results:
    """Label the pairs of a split, or rank its candidates, and score that.

    Labels: accuracy; of two labels also F1 with the threshold that is best on `validation`, and the largest F1 that
    any threshold gives on the split itself, which papers report and which is a bound. Rankings: P@1, MRR, MAP. The
    baseline is word overlap (`jaccard_similarity`): a model below it has learnt nothing that counting words does not
    show. It has a threshold for F1 and labels nothing without one; more labels than two it cannot tell apart.

    Args:
        model: Any `AutoModelForSequenceClassification`, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `sentence1`, `sentence2` and `label`; or of `query`, `candidates` and `relevance` (1 for each
            right candidate) or `label` (the place of the right one).
        validation: Such rows to choose the threshold of F1 with; without them, it is 0.5.
        batch_size: Pairs at once.
        n_samples, seed, split, data, trust_remote_code: As of `evaluate_paraphraser`.
        output_dir: Where to write `predictions-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.

    Returns:
        What `results-SPLIT.json` holds: the model's entry, the overlap's, and published rows, if any.

    Raises:
        InputError: Wrong columns, no tokenizer, or a model that does not fit the rows.
    """
    found = describe_data(data, split, len(dataset))
    model, tokenizer = load_given(model, tokenizer, load_pair_model, trust_remote_code)
    environment = {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)}
    is_ranking = _check_columns(model, dataset)

    started = time.perf_counter()
    texts = _texts(dataset, is_ranking)
    logits = match_pairs(model, tokenizer, *texts, batch_size=batch_size)
    seconds = time.perf_counter() - started
    if is_ranking:
        sizes = [len(candidates) for candidates in dataset["candidates"]]
        outputs, counted = (
            [scores.tolist() for scores in flat.split(sizes)]
            for flat in (logits[:, 0], torch.tensor(_overlap(*texts)))
        )
        references = dataset["relevance" if "relevance" in dataset.column_names else "label"]
        statistics, overlap = (ranking(scores, references).statistics for scores in (outputs, counted))
    else:
        outputs, labels = logits.softmax(-1).tolist(), dataset["label"]
        statistics, overlap = _accuracy_statistics(outputs, labels), {}
        if model.config.num_labels == 2:
            own = of_overlap = 0.5
            if validation is not None:
                others, right = _texts(validation, False), validation["label"]
                found_scores = match_pairs(model, tokenizer, *others, batch_size=batch_size).softmax(-1)[:, 1].tolist()
                own, of_overlap = (_best_threshold(each, right) for each in (found_scores, _overlap(*others)))
            statistics |= _f1_statistics([scores[1] for scores in outputs], labels, own)
            overlap = _f1_statistics(_overlap(*texts), labels, of_overlap)

    scoring = Scoring(n_samples=n_samples, seed=seed)
    embedded = cast(nn.Embedding, model.get_input_embeddings()).weight.numel()
    entry = describe_model(
        model,
        scoring.measure(statistics),
        counts={"num_parameters_without_embeddings": model.num_parameters() - embedded},
        speed=Speed(seconds, len(logits) / seconds, "pairs"),
        outputs=None if output_dir is None else f"predictions-{split}.jsonl",
    )
    baselines = [Entry(OVERLAP, "baseline", scoring.measure(overlap))] if overlap else []
    paper = describe_papers(find_matching_rows(model.config, found.path))
    rows = ({**row, "prediction": output} for row, output in zip(dataset, outputs, strict=True))
    results = Results("matches", found, (entry, *baselines, *paper), environment)
    return save_results(results, output_dir, predictions=rows)


def read_match_statistics(file: Path) -> dict[str, SufficientStatistics]:
    """The statistics of the scores that `evaluate_matcher` computed, from the file of predictions that it wrote.

    F1 is left out: its threshold was chosen by other rows. The largest F1 names no threshold, so that trainings can be
    averaged, each of which has one of its own.
    """
    rows = read_lines(file)
    outputs = [row["prediction"] for row in rows]
    if "candidates" in rows[0]:
        return ranking(outputs, [row["relevance" if "relevance" in row else "label"] for row in rows]).statistics
    labels = [row["label"] for row in rows]
    found = _accuracy_statistics(outputs, labels)
    if len(outputs[0]) == 2:
        largest = _f1_statistics([scores[1] for scores in outputs], labels, threshold=0.5)["max_f1"]
        found["max_f1"] = replace(largest, name="max_f1", signature="threshold:best")
    return found


def format_matching_results(results: Results) -> str:
    """The scores as text: a line for each system, ours first, the overlap and published rows below."""
    (entry,) = results.of("model")
    return format_scores(results, 3, f"pairs a second: {cast(Speed, entry.speed).per_second:.1f}")


def _check_columns(model: PreTrainedModel, dataset: Dataset) -> bool:
    """Whether the rows are queries with candidates; refuse rows that the model cannot score."""
    columns = set(dataset.column_names)
    is_ranking = {"query", "candidates"} <= columns and bool({"relevance", "label"} & columns)
    if not is_ranking and not {"sentence1", "sentence2", "label"} <= columns:
        raise InputError(
            f"the dataset has the columns {dataset.column_names}; needed are `sentence1`, `sentence2` and `label`, or "
            "`query`, `candidates` and `label`"
        )
    if is_ranking != (model.config.num_labels == 1):
        kinds = ("labels pairs", "scores candidates")
        raise InputError(f"the model {kinds[not is_ranking]}, but the dataset is for one that {kinds[is_ranking]}")
    return is_ranking


def _texts(dataset: Dataset, is_ranking: bool) -> tuple[list[str], list[str]]:
    if not is_ranking:
        return list(dataset["sentence1"]), list(dataset["sentence2"])
    pairs = [(row["query"], candidate) for row in dataset for candidate in row["candidates"]]
    return [query for query, _ in pairs], [candidate for _, candidate in pairs]


def _overlap(first: list[str], second: list[str]) -> list[float]:
    return [jaccard_similarity(*pair) for pair in zip(first, second, strict=True)]


def _best_threshold(scores: list[float], labels: list[int]) -> float:
    return classification(scores, labels, threshold=0.5)["max_f1_threshold"]


def _accuracy_statistics(outputs: list[list[float]], labels: list[int]) -> dict[str, SufficientStatistics]:
    chosen = np.asarray(outputs).argmax(-1).tolist()
    return {"accuracy": classification(chosen, labels).statistics["accuracy"]}


def _f1_statistics(scores: list[float], labels: list[int], threshold: float) -> dict[str, SufficientStatistics]:
    """F1 with a threshold, and with that which is best for these very labels."""
    thresholds = {"f1": threshold, "max_f1": _best_threshold(scores, labels)}
    return {
        name: classification(scores, labels, threshold=value).statistics["f1"] for name, value in thresholds.items()
    }
