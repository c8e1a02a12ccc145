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

from ..errors import InputError
from ..files import write_text
from ..generation.engine import decode_with_unknown, generate_paraphrases
from ..metrics.bleu.scoring import bleu_statistics
from ..metrics.coherence.scoring import coherence_statistics
from ..metrics.rouge.scoring import rouge_statistics
from ..metrics.significance import bootstrap
from ..papers import find_paper_rows
from ..pictures import add_legend, new_figure, save_figure
from ..tokenization import join_sentences
from ..training.environment import describe_environment

__all__ = ["evaluate_autoencoder", "format_document_results", "plot_reconstruction"]

# Those of Table 3 of Li et al. 2015, and the third ROUGE of section 4.3.
SCORES = ("bleu_4", "rouge1_recall", "rouge2_recall", "rougeW_recall", "coherence")
# How `<unk>` is scored: BLEU would make three words of it, and ROUGE reads letters only.
UNKNOWN_WORD = "unk"
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

    Outputs are compared with what the tokenizer gives back of a document, since no model could write another text: in
    its case and spelling, a sentence a line, its unknown words `<unk>` there and in the outputs.

    The baselines: `copy` is each such document itself, coherence 0 at best; `shuffled` its sentences in random order,
    whose coherence is that of a writer who knows all sentences and no order.

    Args:
        model: Any sequence-to-sequence model trained to autoencode.
        tokenizer: Reads and writes a sentence a line.
        dataset: Rows of `sentences`.
        batch_size: Documents at once.
        n_samples: Resampled corpora for the 95% intervals.
        seed: Of those, of the shuffling, and of aligning sentences without a match.
        output_dir: Where to write `reconstructions-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.
        split: Name of the split.
        data: Where the rows come from, as `load_dataset` spells it.
        generate_kwargs: Handed to `model.generate`; the rest is up to its generation config.

    Returns:
        What `results-SPLIT.json` holds: `model`, `data`, `systems` (for `model`, `copy` and `shuffled` the score, low
        and high of each score), `signatures`, `unaligned` (for each of them how many `sentences` it has, and how many
        share no verb or noun with the document, which coherence aligns at random), `words` (of the documents, and how
        many are `unknown`), `reconstruction` (the rate of exact copies by length in words), `seconds`,
        `words_per_second`, `paper`, `environment`.

    Raises:
        InputError: There is no column `sentences`, or no row.
    """
    if "sentences" not in dataset.column_names or not len(dataset):
        raise InputError(f"the dataset has {len(dataset)} rows of {dataset.column_names}; needed are `sentences`")
    texts = [join_sentences(sentences) for sentences in dataset["sentences"]]
    environment = describe_environment(model.device)
    started = time.perf_counter()
    outputs = generate_paraphrases(
        model, tokenizer, texts, batch_size=batch_size, keep_unknown=True, **generate_kwargs
    )
    seconds = time.perf_counter() - started
    originals = [decode_with_unknown(tokenizer, tokenizer(text, verbose=False)["input_ids"]) for text in texts]

    written = [split_lines(text) for text in outputs]
    documents = [split_lines(text) or [""] for text in originals]
    shuffle = random.Random(seed)
    systems = {"model": written, "copy": documents, "shuffled": [shuffle.sample(d, len(d)) for d in documents]}
    scored = {
        name: score_documents(system, documents, tokenizer.unk_token, n_samples, seed)
        for name, system in systems.items()
    }
    words = [word for original in originals for word in original.split()]
    known = [word for word in words if not tokenizer.unk_token or tokenizer.unk_token not in word]
    results = {
        "model": {
            "name": model.name_or_path,
            "model_type": model.config.model_type,
            "num_parameters": model.num_parameters(),
        },
        "data": {**(data or {}), "split": split, "rows": len(documents)},
        "systems": {name: scores for name, (scores, _, _) in scored.items()},
        "signatures": scored["model"][1],
        "unaligned": {name: unaligned for name, (_, _, unaligned) in scored.items()},
        "words": {"words": len(words), "unknown": len(words) - len(known)},
        "reconstruction": reconstruction_by_length(outputs, originals),
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
    outputs: Sequence[list[str]],
    documents: Sequence[list[str]],
    unknown: str | None,
    n_samples: int,
    seed: int,
) -> tuple[dict[str, dict[str, float]], dict[str, str], dict[str, int]]:
    """Score documents as lists of sentences.

    Args:
        outputs: What was written.
        documents: What should have been.
        unknown: The mark of unknown words in both.
        n_samples: Resampled corpora for the intervals.
        seed: Of those, and of what coherence draws.

    Returns:
        Scores with their intervals, signatures, and how many `sentences` of the outputs were aligned at random.
    """
    flat_outputs, flat_documents = (
        [replace_mark(" ".join(document), unknown, UNKNOWN_WORD) for document in system]
        for system in (outputs, documents)
    )
    # An unknown word is neither verb nor noun.
    sentences = (
        [[replace_mark(text, unknown, "") for text in texts] for texts in side] for side in (outputs, documents)
    )
    statistics = {
        **bleu_statistics(flat_outputs, flat_documents, lowercase=True),
        **rouge_statistics(flat_outputs, flat_documents),
        **coherence_statistics(*sentences, seed=seed),
    }
    scores = {}
    for name in SCORES:
        result = bootstrap(statistics[name], n_samples=n_samples, seed=seed)
        scores[name] = {"score": result.score, "low": result.low, "high": result.high}
    unaligned, count = statistics["unaligned"].rows.sum(axis=0).astype(int).tolist()
    return (
        scores,
        {name: statistics[name].signature for name in SCORES},
        {"sentences": count, "unaligned": unaligned},
    )


def replace_mark(text: str, mark: str | None, other: str) -> str:
    """The text with another word for the mark of unknown words, where the tokenizer has one."""
    return text.replace(mark, other) if mark else text


def split_lines(text: str) -> list[str]:
    """The sentences of a text that has one a line."""
    return [line for line in text.split("\n") if line]


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
    unaligned = ", ".join(
        f"{names[name]} {counts['unaligned']:,} of {counts['sentences']:,}"
        for name, counts in results["unaligned"].items()
    )
    rates = ", ".join(f"{entry['words']}+: {entry['exact']:.1%}" for entry in results["reconstruction"])
    return "\n".join(
        [
            f"{results['data'].get('path', 'data')}, split {results['data']['split']}, {results['data']['rows']:,} "
            "documents; ± half of the 95% interval",
            "".join((" " * label, *(f"  {name:>15}" for name in SCORES))),
            *("".join((f"{name:<{label}}", *(f"  {cell:>15}" for cell in cells))) for name, cells in lines.items()),
            f"scored against the documents as the tokenizer gives them back, {results['words']['unknown']:,} of their "
            f"{results['words']['words']:,} words unknown",
            f"sentences without a verb or noun of the document, aligned at random for coherence: {unaligned}",
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
    figure = new_figure()
    axes = figure.subplots()
    for name, result in results.items():
        rates = result["reconstruction"]
        middles = [entry["words"] + BIN / 2 for entry in rates]
        axes.plot(middles, [100 * entry["exact"] for entry in rates], marker="o", label=name)
    axes.set(xlabel="words of the document", ylabel="exact reconstructions, %", ylim=(0, None))
    axes.grid(True, alpha=0.3)
    add_legend(axes)
    save_figure(figure, path)


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
