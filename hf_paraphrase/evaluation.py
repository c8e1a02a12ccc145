"""A split and a model -> paraphrases, BLEU, perplexity, and the files that hold them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .errors import InputError
from .files import write_text
from .inference import compute_perplexity, generate_paraphrases, load_paraphraser
from .metrics.bleu.scoring import bleu
from .metrics.inputs import check_texts
from .paper_figures import find_paper_row
from .training.environment import describe_environment

__all__ = ["evaluate_paraphraser", "format_results"]


def evaluate_paraphraser(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    num_beams: Sequence[int] = (5, 10),
    batch_size: int = 64,
    lowercase: bool = True,
    n_bootstrap: int | None = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: dict[str, Any] | None = None,
    **generate_kwargs: Any,
) -> dict[str, Any]:
    """Paraphrase a split, score the outputs against all references, and put two baselines beside them.

    BLEU ignores case by default, since word-level tokenizers lower-case what they read; its signature says so. The
    baselines use the same rows: `copy_source` hands back each source as its own paraphrase; `first_reference` scores
    that against the source and the other references, as many texts as an output of the model is scored against.

    Args:
        model: Any `AutoModelForSeq2SeqLM`, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `source` and `references`, or of `source` and one `target`.
        num_beams: Beam widths, each decoded and scored; 1 is greedy.
        batch_size: Rows at once.
        lowercase: Whether BLEU ignores case.
        n_bootstrap: Samples for the 95% confidence intervals of BLEU; None for no intervals.
        seed: Seed of that sampling; decoding itself draws nothing.
        output_dir: Where to write `predictions-SPLIT-beamN.jsonl` and `results-SPLIT.json`; None to write nothing.
        split: Name of the split.
        data: Where the rows come from, as `load_dataset` spells it: `path`, `name`, arguments of the builder.
        generate_kwargs: Handed to `model.generate`, for instance `max_new_tokens`; the rest is up to the model's
            generation config.

    Returns:
        What `results-SPLIT.json` holds: `model`, `data`, `generation` (for each beam width the `decoding` settings,
        `bleu`, `paper_bleu`, `seconds`, `sentences_per_second`), `perplexity` of the first references, `baselines`,
        `paper` (which row of a paper `paper_bleu` is from; None where no row has this architecture), `environment`.

    Raises:
        InputError: Rows that cannot be scored, or no tokenizer.
    """
    sources, references = _read_rows(dataset)
    if output_dir is not None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
    if not isinstance(model, PreTrainedModel):
        model, saved_tokenizer = load_paraphraser(model)
        tokenizer = tokenizer or saved_tokenizer
    if tokenizer is None:
        raise InputError("tokenizer is missing: give one, or give the model by its path")

    data = data or {}
    paper_row = find_paper_row(model.config, data.get("path"))
    score = partial(bleu, lowercase=lowercase, n_bootstrap=n_bootstrap, seed=seed)
    first = [texts[0] for texts in references]
    perplexity = compute_perplexity(model, tokenizer, sources, first, batch_size=batch_size)
    decided = model.generation_config.to_diff_dict()
    del decided["transformers_version"]
    generation = []
    for width in num_beams:
        decoding = {**generate_kwargs, "num_beams": width, "do_sample": False}
        started = time.perf_counter()
        predictions = generate_paraphrases(model, tokenizer, sources, batch_size=batch_size, **decoding)
        seconds = time.perf_counter() - started
        if output_dir is not None:
            file = Path(output_dir) / f"predictions-{split}-beam{width}.jsonl"
            _write_predictions(file, sources, references, predictions)
        generation.append(
            {
                "num_beams": width,
                "bleu": score(predictions, references),
                "paper_bleu": paper_row and paper_row.bleu.get(width),
                "decoding": {**decided, **decoding},
                "seconds": seconds,
                "sentences_per_second": len(sources) / seconds,
            }
        )

    others = [[source, *texts[1:]] for source, texts in zip(sources, references, strict=True)]
    results = {
        "model": {
            "name": model.name_or_path,
            "model_type": model.config.model_type,
            "num_parameters": model.num_parameters(),
        },
        "data": {**data, "split": split, "rows": len(sources)},
        "generation": generation,
        "perplexity": perplexity,
        "baselines": {"copy_source": score(sources, references), "first_reference": score(first, others)},
        "paper": paper_row and paper_row.model,
        "environment": {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)},
    }
    if output_dir is not None:
        text = json.dumps(results, indent=2, ensure_ascii=False)
        write_text(Path(output_dir) / f"results-{split}.json", f"{text}\n")
    return results


def format_results(results: dict[str, Any]) -> str:
    """The table of BLEU scores, ours beside the paper's and the baselines, as text."""
    data, generation, baselines = results["data"], results["generation"], results["baselines"]
    rows = [
        ("BLEU", [f"beam {entry['num_beams']}" for entry in generation]),
        (results["model"]["name"] or "this model", [_format_bleu(entry["bleu"]) for entry in generation]),
        ("the source, copied", [_format_bleu(baselines["copy_source"])]),
        ("first reference, against source and others", [_format_bleu(baselines["first_reference"])]),
    ]
    if results["paper"]:
        rows.insert(2, (results["paper"], [_format_figure(entry["paper_bleu"]) for entry in generation]))
    width = max(len(label) for label, _ in rows)
    speeds = ", ".join(f"{entry['sentences_per_second']:.1f} (beam {entry['num_beams']})" for entry in generation)
    return "\n".join(
        [
            f"{data.get('path', 'data')}, split {data['split']}, {data['rows']:,} rows",
            *(f"{label:<{width}}" + "".join(f"  {cell:>12}" for cell in cells) for label, cells in rows),
            f"perplexity of the first references: {results['perplexity']['perplexity']:.2f}",
            f"sentences a second: {speeds}",
            f"signature: {generation[0]['bleu']['signature']}",
        ]
    )


def _format_figure(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.1f}"


def _format_bleu(result: dict[str, Any]) -> str:
    if "confidence_interval" not in result:
        return f"{result['score']:.1f}"
    low, high = result["confidence_interval"]
    return f"{result['score']:.1f} ± {(high - low) / 2:.1f}"


def _read_rows(dataset: Dataset) -> tuple[list[str], list[list[str]]]:
    columns = dataset.column_names
    references = "references" if "references" in columns else "target"
    if "source" not in columns or references not in columns:
        raise InputError(f"the dataset has the columns {columns}; needed are `source` and `references` (or `target`)")
    return check_texts(dataset["source"], dataset[references])


def _write_predictions(path: Path, sources: list[str], references: list[list[str]], predictions: list[str]) -> None:
    rows = (
        {"source": source, "references": texts, "prediction": prediction}
        for source, texts, prediction in zip(sources, references, predictions, strict=True)
    )
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
