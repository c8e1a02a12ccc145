"""A split and a model -> paraphrases, their scores and perplexity, and the files that hold them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..files import write_text
from ..generation.engine import compute_perplexity, generate_candidates, generate_several, load_paraphraser
from ..metrics.inputs import check_texts
from ..metrics.score_files import ScoredTexts
from ..metrics.score_table import check_metrics, score_systems
from ..metrics.self_bleu.scoring import self_bleu
from ..models.candidate_selection import tokens
from ..models.retrieved_pairs import find_pairs, load_retriever
from ..papers import find_paper_rows
from ..registration import architecture_of
from ..retrieval import ParaphraseRetriever
from ..training.environment import describe_environment
from .notes import count_pairs, describe_retrieval

__all__ = ["evaluate_paraphraser", "format_results"]


def evaluate_paraphraser(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    num_beams: Sequence[int] = (5, 10),
    batch_size: int = 64,
    metrics: Sequence[str] = ("bleu",),
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: dict[str, Any] | None = None,
    num_neighbors: Sequence[int] = (1,),
    retriever: ParaphraseRetriever | None = None,
    allow_own_pair: bool = False,
    num_candidates: int | None = None,
    select: str = "score",
    matcher: str | os.PathLike | None = None,
    decoding: str = "beam",
    num_return_sequences: int = 1,
    group_by: str | None = None,
    **generate_kwargs: Any,
) -> dict[str, Any]:
    """Paraphrase a split, score the outputs against all references, and put two baselines beside them.

    The baselines use the same rows: `copy_source` hands back each source as its own paraphrase; `first_reference`
    scores that against the source and the other references, as many texts as an output of the model is scored
    against. Scores are those of `hf-paraphrase score`.

    A model that edits by retrieved pairs writes one output by each of the nearest: of each row one of them, drawn at
    random, is scored, and self-BLEU says how alike they are. The rows K = 1, 3, 5 of Kazemnejad et al. 2020, appendix
    A.2, are of a model each, trained with as many neighbours; those of one model are not to be put beside them. Any
    other model writes `num_return_sequences`, of which the likeliest is scored.

    Where train and test overlap, the nearest pair is often (x, y) itself, and the answer is handed over. So pairs that
    share a sentence with the row, its source or one of its references, on either side, are left out; sentences are
    equal that differ in case or white space alone.

    Args:
        model: Any `AutoModelForSeq2SeqLM`, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `source` and `references`, or of `source` and one `target`.
        num_beams: Beam widths, each decoded and scored; 1 is greedy.
        batch_size: Rows at once.
        metrics: Names out of `metrics.score_table.SCORED_METRICS`.
        metric_options: For a metric the options of its function. By default those that heed case ignore it, since
            word-level tokenizers lower-case what they read; signatures say so.
        n_samples: Resampled corpora for the 95% intervals.
        seed: Seed of that sampling; decoding itself draws nothing.
        output_dir: Where to write `predictions-SPLIT-beamN.jsonl` (of another decoding `-diverse_beamN` or `-dipsN`)
            and `results-SPLIT.json`; None to write nothing. Where there are several outputs a row, the first file has
            them all, as `predictions`.
        split: Name of the split.
        data: Where the rows come from, as `load_dataset` spells it: `path`, `name`, arguments of the builder.
        num_neighbors: How many pairs; each number is scored apart. Of no account for other models.
        retriever: Finds the pairs; None for the one saved with the model.
        allow_own_pair: Whether to edit by pairs that share the row's source or a reference too, as the paper does.
        num_candidates: Outputs to choose from at each decoding, as `generate_paraphrases` takes it.
        select: How they are chosen.
        matcher: The model that `select="matcher"` asks.
        decoding: How outputs are found: a name out of `models.decodings.DECODINGS`, whose own arguments are among
            `generate_kwargs`.
        num_return_sequences: Outputs of each row, by a model that edits by no pairs.
        group_by: A column of the dataset, such as `in_train`: its values' rows are scored apart too.
        generate_kwargs: Handed to `model.generate`, for instance `max_new_tokens`; the rest is up to the model's
            generation config.

    Returns:
        What `results-SPLIT.json` holds: `model`, `data`, `generation` (for each beam width, and each number of pairs
        where there are any, the `decoding` settings, `scores`, `seconds`, `sentences_per_second`; `repeats`, how many
        rows have `doubles` and `copies` of the source among their outputs; `self_bleu` of several outputs a row,
        `candidate_self_bleu` of those that one was chosen from), `retrieval` (of a model that edits by pairs:
        `allow_own_pair`, and `rows_with_own_pair`, for how many rows there is one), `perplexity` of the first
        references, `baselines` (scores of each), `paper` (the rows of a paper with this architecture, if any),
        `environment`.
        Scores are lists of rows with `metric`, `score`, `low`, `high` and `signature`; where there are groups,
        `groups` has those of each.

    Raises:
        InputError: Rows that cannot be scored, no tokenizer, no retriever, an unknown metric or column, or both one
            output chosen of several and several asked for.
    """
    sources, references = _read_rows(dataset)
    check_metrics(metrics)
    if num_return_sequences > 1 and num_candidates is not None:
        raise InputError("`num_candidates` leaves one output of each row: `num_return_sequences` must be 1")
    if output_dir is not None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
    if not isinstance(model, PreTrainedModel):
        model, saved_tokenizer = load_paraphraser(model)
        tokenizer = tokenizer or saved_tokenizer
    if tokenizer is None:
        raise InputError("tokenizer is missing: give one, or give the model by its path")
    # Asked now: the working tree may change while the model writes.
    environment = describe_environment(model.device)

    options = dict.fromkeys(("bleu", "pinc", "ibleu"), {"lowercase": True}) | dict(metric_options or {})

    def score(predictions: list[str], against: list[list[str]], rows: Sequence[int] | None = None) -> list[dict]:
        columns = [predictions, against, sources]
        if rows is not None:
            columns = [[column[row] for row in rows] for column in columns]
        texts = ScoredTexts([columns[0]], *columns[1:])
        scored = score_systems(texts, metrics=metrics, options=options, n_samples=n_samples, seed=seed)
        # What only a comparison of two systems fills in is left out.
        return [{name: value for name, value in asdict(row).items() if value is not None} for row in scored]

    def score_with_groups(predictions: list[str]) -> dict[str, Any]:
        scores = {"scores": score(predictions, references)}
        if groups:
            scores["groups"] = {
                name: {"rows": len(rows), "scores": score(predictions, references, rows)}
                for name, rows in groups.items()
            }
        return scores

    # The baselines ask no model: what cannot be scored shows before hours of generation.
    groups = _group_rows(dataset, group_by)
    first = [texts[0] for texts in references]
    others = [[source, *texts[1:]] for source, texts in zip(sources, references, strict=True)]
    copied = score_with_groups(sources)
    baselines = {"copy_source": copied.pop("scores"), "first_reference": score(first, others)}
    sentences = [[source, *texts] for source, texts in zip(sources, references, strict=True)]
    pairs, retrieval = _find_pairs(model, retriever, sentences, max(num_neighbors), allow_own_pair)
    if pairs and num_return_sequences > 1:
        raise InputError("`num_return_sequences`: this model writes one output for each pair; raise `num_neighbors`")
    perplexity = compute_perplexity(
        model, tokenizer, sources, first, batch_size=batch_size, pairs=[group[0] for group in pairs] if pairs else None
    )
    decided = model.generation_config.to_diff_dict()
    del decided["transformers_version"]
    choice = {} if num_candidates is None else {"num_candidates": num_candidates, "select": select}
    if matcher is not None:
        choice["matcher"] = os.fspath(matcher)
    if decoding != "beam":
        choice["decoding"] = decoding
    several = {"num_return_sequences": num_return_sequences} if num_return_sequences > 1 else {}
    generation = []
    for width in num_beams:
        settings = {**generate_kwargs, "num_beams": width, "do_sample": False}
        write = partial(
            generate_several if several else generate_candidates, model, tokenizer, sources, batch_size=batch_size
        )
        chosen_from = []
        started = time.perf_counter()
        if several:
            candidates = [tuple(group) for group in write(count=num_return_sequences, **choice, **settings)]
        else:
            nearest = zip(*pairs, strict=True) if pairs else [None]
            written = [write(pairs=each, **choice, **settings) for each in nearest]
            candidates = [tuple(group[0] for group in groups) for groups in zip(*written, strict=True)]
            chosen_from = written[0]
        seconds = time.perf_counter() - started
        for k in num_neighbors if pairs else [None]:
            predictions = _draw(candidates, k, seed)
            all_outputs = [texts[:k] for texts in candidates]
            if output_dir is not None:
                name = f"predictions-{split}-{decoding}{width}" + ("" if k in (None, 1) else f"-neighbors{k}")
                _write_predictions(Path(output_dir) / f"{name}.jsonl", sources, references, predictions, all_outputs)
            generation.append(
                {
                    "num_beams": width,
                    **({} if k is None else {"num_neighbors": k}),
                    **score_with_groups(predictions),
                    **_score_diversity(all_outputs, "self_bleu"),
                    "repeats": _count_repeats(sources, all_outputs),
                    **_score_diversity(chosen_from, "candidate_self_bleu"),
                    "decoding": {**decided, **settings, **choice, **several},
                    "seconds": seconds,
                    "sentences_per_second": len(sources) * len(candidates[0]) / seconds,
                }
            )

    data = data or {}
    paper = [row for row in find_paper_rows(model.config, data.get("path")) if row.num_beams in {None, *num_beams}]
    results = {
        "model": {
            "name": model.name_or_path,
            "model_type": model.config.model_type,
            "num_parameters": model.num_parameters(),
        },
        "data": {**data, "split": split, "rows": len(sources)},
        "generation": generation,
        **({"retrieval": retrieval} if pairs else {}),
        "perplexity": perplexity,
        "baselines": baselines | ({"copy_source_groups": copied["groups"]} if groups else {}),
        "paper": [row._asdict() for row in paper],
        "environment": {"batch_size": batch_size, "seed": seed, **environment},
    }
    if output_dir is not None:
        text = json.dumps(results, indent=2, ensure_ascii=False)
        write_text(Path(output_dir) / f"results-{split}.json", f"{text}\n")
    return results


def format_results(results: dict[str, Any]) -> str:
    """The scores as text: a line for each system, ours first, the baselines and the paper's rows below."""
    data, generation, baselines = results["data"], results["generation"], results["baselines"]
    name = results["model"]["name"] or "this model"
    scores = generation[0]["scores"]
    metrics = [row["metric"] for row in scores]
    systems = [
        *((_name_entry(name, entry), _format_scores(entry["scores"])) for entry in generation),
        ("the source, copied", _format_scores(baselines["copy_source"])),
        ("first reference, against source and others", _format_scores(baselines["first_reference"])),
        *((_name_paper_row(row), _format_figures(row["scores"], metrics)) for row in results["paper"]),
    ]
    label = max(len(system) for system, _ in systems)
    widths = [max(12, len(metric)) for metric in metrics]
    speeds = ", ".join(
        f"{speed:.1f} (beam {width})"
        for width, speed in {entry["num_beams"]: entry["sentences_per_second"] for entry in generation}.items()
    )
    diversity = [
        f"self-BLEU-2 of {_count_outputs(entry)} outputs a row: {entry['self_bleu']['self_bleu_2']:.1f}"
        for entry in generation
        if "self_bleu" in entry
    ]
    repeats = [
        f"rows with a double among {_count_outputs(entry)} outputs: {entry['repeats']['doubles']}, with a copy of the "
        f"source: {entry['repeats']['copies']}"
        for entry in generation
        if "self_bleu" in entry
    ]
    return "\n".join(
        [
            f"{data.get('path', 'data')}, split {data['split']}, {data['rows']:,} rows; ± half of the 95% interval",
            *(
                f"{system:<{label}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
                for system, cells in [("", metrics), *systems]
            ),
            f"perplexity of the first references: {results['perplexity']['perplexity']:.2f}",
            f"sentences a second: {speeds}",
            *describe_retrieval(results),
            *diversity,
            *repeats,
            *(f"{row['metric']}: {row['signature']}" for row in scores),
        ]
    )


def _name_entry(name: str, entry: dict[str, Any]) -> str:
    pairs = f", {count_pairs(entry['num_neighbors'])}" if "num_neighbors" in entry else ""
    return f"{name}, {entry['decoding'].get('decoding', 'beam')} {entry['num_beams']}{pairs}"


def _count_outputs(entry: dict[str, Any]) -> int:
    return entry.get("num_neighbors") or entry["decoding"]["num_return_sequences"]


def _format_scores(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['score']:.1f} ± {(row['high'] - row['low']) / 2:.1f}" for row in rows]


def _format_figures(figures: dict[str, float], metrics: list[str]) -> list[str]:
    return [f"{figures[metric]:.1f}" if metric in figures else "-" for metric in metrics]


def _name_paper_row(row: dict[str, Any]) -> str:
    return row["model"] if row["num_beams"] is None else f"{row['model']}, beam {row['num_beams']}"


def _read_rows(dataset: Dataset) -> tuple[list[str], list[list[str]]]:
    columns = dataset.column_names
    references = "references" if "references" in columns else "target"
    if "source" not in columns or references not in columns:
        raise InputError(f"the dataset has the columns {columns}; needed are `source` and `references` (or `target`)")
    return check_texts(dataset["source"], dataset[references])


def _group_rows(dataset: Dataset, column: str | None) -> dict[str, list[int]]:
    """The rows of each value of a column."""
    if column is None:
        return {}
    if column not in dataset.column_names:
        raise InputError(f"`group_by`: the dataset has no column {column}, only {', '.join(dataset.column_names)}")
    groups: dict[str, list[int]] = {}
    for row, value in enumerate(dataset[column]):
        groups.setdefault(f"{column}={value}", []).append(row)
    return dict(sorted(groups.items()))


def _find_pairs(
    model: PreTrainedModel,
    retriever: ParaphraseRetriever | None,
    sentences: list[list[str]],
    k: int,
    allow_own_pair: bool,
) -> tuple[list[list[tuple[str, str]]] | None, dict[str, Any]]:
    """The nearest pairs of each row, for a model that edits by them, and what the results say of them.

    Args:
        model: The model.
        retriever: None for the one saved with it.
        sentences: Each row's source and references.
        k: Pairs for each.
        allow_own_pair: Whether they may share one of the sentences.
    """
    if not architecture_of(model.config).reads_pairs:
        return None, {}
    try:
        retriever = retriever or load_retriever(model)
    except ValueError as error:
        raise InputError(str(error)) from error
    if len(retriever) < k:
        raise InputError(f"`num_neighbors`: {k}, but the retriever has {len(retriever)} pairs")
    pairs = find_pairs(retriever, [texts[0] for texts in sentences], k, None if allow_own_pair else sentences)
    if any(len(found) < k for found in pairs):
        raise InputError(
            f"`num_neighbors`: {k}, but fewer pairs were found that share no sentence with their row; lower it, or "
            "set `allow_own_pair`"
        )
    rows = int((retriever.count_shared(sentences) > 0).sum())
    return pairs, {"allow_own_pair": allow_own_pair, "rows_with_own_pair": rows}


def _draw(candidates: list[tuple[str, ...]], k: int | None, seed: int) -> list[str]:
    """Of each row one of its first `k` outputs."""
    places = np.random.default_rng(seed).integers(k or 1, size=len(candidates))
    return [texts[place] for texts, place in zip(candidates, places, strict=True)]


def _score_diversity(outputs: Sequence[Sequence[str]], name: str) -> dict[str, Any]:
    """How alike the outputs of each row are, where there are several."""
    if not outputs or len(outputs[0]) == 1:
        return {}
    return {name: self_bleu(outputs, lowercase=True)}


def _count_repeats(sources: list[str], outputs: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many rows have an output twice, and how many their source, by the words in lower case."""
    rows = [(tokens(source), [tokens(text) for text in texts]) for source, texts in zip(sources, outputs, strict=True)]
    return {
        "doubles": sum(len(set(map(tuple, texts))) < len(texts) for _, texts in rows),
        "copies": sum(source in texts for source, texts in rows),
    }


def _write_predictions(
    path: Path,
    sources: list[str],
    references: list[list[str]],
    predictions: list[str],
    all_outputs: list[tuple[str, ...]],
) -> None:
    rows = (
        {"source": source, "references": texts, "prediction": prediction}
        | ({"predictions": outputs} if len(outputs) > 1 else {})
        for source, texts, prediction, outputs in zip(sources, references, predictions, all_outputs, strict=True)
    )
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
