"""A split of documents and an autoencoder -> reconstructions, how near they come, and the files that hold them."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .errors import InputError
from .files import write_text
from .inference import generate_paraphrases
from .metrics.bleu.scoring import bleu_statistics
from .metrics.coherence.scoring import coherence_statistics
from .metrics.rouge.scoring import rouge_statistics
from .metrics.significance import bootstrap
from .paper_figures import find_paper_rows
from .tokenization import join_sentences
from .training.environment import describe_environment

__all__ = ["evaluate_autoencoder", "format_document_results", "plot_reconstruction"]

# Those of Table 3 of Li et al. 2015, and the third ROUGE of section 4.3.
SCORES = ("bleu_4", "rouge1_recall", "rouge2_recall", "rougeW_recall", "coherence")
# Words in a bin of the reconstruction rate.
BIN = 10


def evaluate_autoencoder(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    *,
    batch_size: int = 32,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    **generate_kwargs: Any,
) -> dict[str, Any]:
    """Write documents again from their vectors and score the outputs, with two baselines that frame coherence.

    The baselines: `copy` is each document itself, coherence 0 at best; `shuffled` its sentences in random order, whose
    coherence is that of a writer who knows all sentences and no order.

    Args:
        model: Any sequence-to-sequence model trained to autoencode.
        tokenizer: Reads and writes a sentence a line.
        dataset: Rows of `sentences`.
        batch_size: Documents at once.
        n_samples: Resampled corpora for the 95% intervals.
        seed: Of those and of the shuffling.
        output_dir: Where to write `reconstructions-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.
        split: Name of the split.
        data: Where the rows come from, as `load_dataset` spells it.
        generate_kwargs: Handed to `model.generate`; the rest is up to its generation config.

    Returns:
        What `results-SPLIT.json` holds: `model`, `data`, `systems` (for `model`, `copy` and `shuffled` the score, low
        and high of each score), `signatures`, `reconstruction` (the rate of exact copies by length in words),
        `seconds`, `words_per_second`, `paper`, `environment`.

    Raises:
        InputError: There is no column `sentences`, or no row.
    """
    if "sentences" not in dataset.column_names or not len(dataset):
        raise InputError(f"the dataset has {len(dataset)} rows of {dataset.column_names}; needed are `sentences`")
    documents = [list(sentences) for sentences in dataset["sentences"]]
    texts = [join_sentences(sentences) for sentences in documents]
    environment = describe_environment(model.device)
    started = time.perf_counter()
    outputs = generate_paraphrases(model, tokenizer, texts, batch_size=batch_size, **generate_kwargs)
    seconds = time.perf_counter() - started
    written = [[line for line in output.split("\n") if line] for output in outputs]

    shuffle = random.Random(seed)
    systems = {"model": written, "copy": documents, "shuffled": [shuffle.sample(d, len(d)) for d in documents]}
    scored = {name: score_documents(system, documents, n_samples, seed) for name, system in systems.items()}
    results = {
        "model": {
            "name": model.name_or_path,
            "model_type": model.config.model_type,
            "num_parameters": model.num_parameters(),
        },
        "data": {**(data or {}), "split": split, "rows": len(documents)},
        "systems": {name: scores for name, (scores, _) in scored.items()},
        "signatures": scored["model"][1],
        "reconstruction": reconstruction_by_length(outputs, [round_trip(tokenizer, text) for text in texts]),
        "seconds": seconds,
        "words_per_second": sum(len(output.split()) for output in outputs) / seconds,
        "decoding": generate_kwargs,
        "paper": [row._asdict() for row in find_paper_rows(model.config, (data or {}).get("path"))],
        "environment": {"batch_size": batch_size, "seed": seed, **environment},
    }
    if output_dir is not None:
        write_results(Path(output_dir), split, results, texts, outputs)
    return results


def score_documents(
    outputs: Sequence[list[str]], documents: Sequence[list[str]], n_samples: int, seed: int
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Scores with their intervals, and signatures, of documents as lists of sentences."""
    flat_outputs, flat_documents = ([" ".join(document) for document in system] for system in (outputs, documents))
    statistics = {
        **bleu_statistics(flat_outputs, flat_documents, lowercase=True),
        **rouge_statistics(flat_outputs, flat_documents),
        **coherence_statistics(outputs, documents),
    }
    scores = {}
    for name in SCORES:
        result = bootstrap(statistics[name], n_samples=n_samples, seed=seed)
        scores[name] = {"score": result.score, "low": result.low, "high": result.high}
    return scores, {name: statistics[name].signature for name in SCORES}


def round_trip(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """The text as a perfect reconstruction writes it."""
    return tokenizer.decode(tokenizer(text, verbose=False)["input_ids"], skip_special_tokens=True).strip()


def reconstruction_by_length(outputs: Sequence[str], originals: Sequence[str]) -> list[dict[str, float]]:
    """The share of documents that come back word for word, for each length in words, ten lengths together."""
    bins: dict[int, list[bool]] = {}
    for output, original in zip(outputs, originals, strict=True):
        bins.setdefault(len(original.split()) // BIN, []).append(output == original)
    return [
        {"words": BIN * number, "documents": len(exact), "exact": sum(exact) / len(exact)}
        for number, exact in sorted(bins.items())
    ]


def format_document_results(results: Mapping[str, Any]) -> str:
    """The scores as text: the model, the baselines and the paper's rows, a line each."""
    names = {"model": results["model"]["name"] or "this model", "copy": "copy", "shuffled": "sentences shuffled"}
    lines = {
        names[name]: [
            f"{scores[score]['score']:.2f} ± {(scores[score]['high'] - scores[score]['low']) / 2:.2f}"
            for score in SCORES
        ]
        for name, scores in results["systems"].items()
    }
    for row in results["paper"]:
        lines[row["model"]] = [f"{row['scores'][score]:.2f}" if score in row["scores"] else "-" for score in SCORES]
    label = max(map(len, lines))
    rates = ", ".join(f"{entry['words']}+: {entry['exact']:.1%}" for entry in results["reconstruction"])
    return "\n".join(
        [
            f"{results['data'].get('path', 'data')}, split {results['data']['split']}, {results['data']['rows']:,} "
            "documents; ± half of the 95% interval",
            "".join((" " * label, *(f"  {name:>15}" for name in SCORES))),
            *("".join((f"{name:<{label}}", *(f"  {cell:>15}" for cell in cells))) for name, cells in lines.items()),
            f"exact reconstructions by words: {rates}",
            *(f"{name}: {signature}" for name, signature in results["signatures"].items()),
        ]
    )


def plot_reconstruction(results: Mapping[str, Mapping[str, Any]], path: str | os.PathLike) -> None:
    """Draw the rate of exact reconstructions over the documents' lengths.

    Args:
        results: Name of each curve, and what `evaluate_autoencoder` returned.
        path: The PNG file to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, result in results.items():
        rates = result["reconstruction"]
        middles = [entry["words"] + BIN / 2 for entry in rates]
        axes.plot(middles, [100 * entry["exact"] for entry in rates], marker="o", label=name)
    axes.set(xlabel="words of the document", ylabel="exact reconstructions, %", ylim=(0, None))
    axes.grid(True, alpha=0.3)
    axes.legend()
    temporary = Path(path).with_name(f".{Path(path).name}.part")
    FigureCanvasAgg(figure).print_png(temporary)
    os.replace(temporary, path)


def write_results(
    directory: Path, split: str, results: Mapping[str, Any], texts: Sequence[str], outputs: Sequence[str]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    rows = (
        json.dumps({"document": text, "output": output}, ensure_ascii=False)
        for text, output in zip(texts, outputs, strict=True)
    )
    write_text(directory / f"reconstructions-{split}.jsonl", "".join(f"{row}\n" for row in rows))
    text = json.dumps(results, indent=2, ensure_ascii=False)
    write_text(directory / f"results-{split}.json", f"{text}\n")
