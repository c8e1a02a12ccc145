"""Reconstruct the documents of a split with an autoencoder, score them, and write the files."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.files import read_lines
from ..common.pictures import add_legend, in_style, new_figure, save_figure
from ..generation.engine import generate_paraphrases
from ..generation.loading import load_paraphraser
from ..metrics.bleu.scoring import bleu
from ..metrics.coherence.scoring import coherence
from ..metrics.rouge.scoring import rouge
from ..metrics.sufficient_statistics import SufficientStatistics
from ..models.search.batch_writing import decode_with_unknown
from ..papers import find_paper_rows
from ..tokenization import join_sentences
from .results import (
    Decoding,
    Entry,
    Group,
    Results,
    Score,
    Speed,
    describe_data,
    describe_model,
    describe_papers,
    format_scores,
)
from .scoring import Scoring, load_given, save_results

# Those of Table 3 of Li et al. 2015, and the third ROUGE of section 4.3.
SCORES = ("bleu_4", "rouge1_recall", "rouge2_recall", "rougeW_recall", "coherence")
# How `<unk>` is scored: BLEU would make three words of it, and ROUGE reads letters only.
UNKNOWN_WORD = "unk"
# Words in a bin of the reconstruction rate.
BIN = 10
# The names of the baselines.
COPIED = "the document, copied"
SHUFFLED = "its sentences in random order"


def evaluate_autoencoder(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    batch_size: int = 32,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
    **generate_kwargs: Any,
) -> Results:
    """Write documents again from their vectors and score the outputs, with two baselines that frame coherence.

    Outputs are compared with the document after a tokenizer round trip, which no model can exceed: its case and
    spelling, one sentence per line, `<unk>` for unknown words in both.

    The baselines: each such document itself, coherence 0 at best; and its sentences in random order, whose coherence
    is that of a writer who knows all sentences and no order.

    Args:
        model: Any sequence-to-sequence model trained to autoencode, or where to load one from.
        tokenizer: Reads and writes a sentence a line; None for the one saved with a model that is given by its path.
        dataset: Rows of `sentences`.
        batch_size: Documents at once.
        n_samples, split, data, trust_remote_code: As of `evaluate_paraphraser`.
        seed: Of the resampling, of the shuffling, and of aligning sentences without a match.
        output_dir: Where to write `reconstructions-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.
        generate_kwargs: Handed to `model.generate`; the rest is up to its generation config.

    Returns:
        What `results-SPLIT.json` holds: the model's entry, whose `groups` have the rate of exact copies (`exact`) by
        length in words, the baselines, and the paper's rows. `counts` say of each how many `sentences` it has and how
        many are `unaligned`, sharing no verb or noun with the document, which coherence aligns at random; of the data
        how many `words` the documents have, and how many are `unknown`.

    Raises:
        InputError: No column `sentences`, or no rows.
    """
    if "sentences" not in dataset.column_names or not len(dataset):
        raise InputError(f"the dataset has {len(dataset)} rows of {dataset.column_names}; needed are `sentences`")
    found = describe_data(data, split, len(dataset))
    model, tokenizer = load_given(model, tokenizer, load_paraphraser, trust_remote_code)
    texts = [join_sentences(sentences) for sentences in dataset["sentences"]]
    environment = {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)}
    started = time.perf_counter()
    outputs = generate_paraphrases(
        model, tokenizer, texts, batch_size=batch_size, keep_unknown=True, **generate_kwargs
    )
    seconds = time.perf_counter() - started
    originals = [decode_with_unknown(tokenizer, tokenizer(text, verbose=False)["input_ids"]) for text in texts]

    written, documents = _split(outputs, originals)
    shuffle = random.Random(seed)
    scoring = Scoring(n_samples=n_samples, seed=seed)
    shuffled = [shuffle.sample(document, len(document)) for document in documents]
    own, copied, mixed = (
        score_documents(system, documents, tokenizer.unk_token, scoring) for system in (written, documents, shuffled)
    )
    width = generate_kwargs.pop("num_beams", None) or model.generation_config.num_beams or 1
    entry = describe_model(
        model,
        **own,
        decoding=Decoding(num_beams=width, generate_kwargs=generate_kwargs),
        groups=reconstruction_by_length(outputs, originals),
        speed=Speed(seconds, sum(len(output.split()) for output in outputs) / seconds, "words"),
        outputs=None if output_dir is None else f"reconstructions-{split}.jsonl",
    )
    words = [word for original in originals for word in original.split()]
    known = [word for word in words if not tokenizer.unk_token or tokenizer.unk_token not in word]
    found = replace(found, counts={"words": len(words), "unknown": len(words) - len(known)})
    baselines = (Entry(COPIED, "baseline", **copied), Entry(SHUFFLED, "baseline", **mixed))
    paper = describe_papers(find_paper_rows(model.config, found.path))
    rows = (
        {"document": text, "read_as": original, "output": output}
        for text, original, output in zip(texts, originals, outputs, strict=True)
    )
    results = Results("documents", found, (entry, *baselines, *paper), environment)
    return save_results(results, output_dir, reconstructions=rows)


def score_documents(
    outputs: Sequence[list[str]], documents: Sequence[list[str]], unknown: str | None, scoring: Scoring
) -> dict[str, Any]:
    """The `scores` of documents as lists of sentences, and as `counts` how many `sentences` the outputs have, and how
    many are `unaligned`; `unknown` is the mark of unknown words in both."""
    statistics = _collect_statistics(outputs, documents, unknown, scoring.seed)
    unaligned, count = statistics["unaligned"].rows.sum(axis=0).astype(int).tolist()
    scores = scoring.measure({score: statistics[score] for score in SCORES})
    return {"scores": scores, "counts": {"sentences": count, "unaligned": unaligned}}


def read_document_statistics(file: Path, unknown: str | None, seed: int) -> dict[str, SufficientStatistics]:
    """The statistics of the scores that `evaluate_autoencoder` computed, from the file of outputs that it wrote, the
    tokenizer's mark of unknown words and the seed."""
    rows = read_lines(file)
    sides = _split([row["output"] for row in rows], [row["read_as"] for row in rows])
    found = _collect_statistics(*sides, unknown, seed)
    return {score: found[score] for score in SCORES}


def _split(outputs: Sequence[str], originals: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    """The sentences of each, one a line; a document has one at least."""
    written, documents = ([list(filter(None, text.split("\n"))) for text in texts] for texts in (outputs, originals))
    return written, [sentences or [""] for sentences in documents]


def _collect_statistics(
    outputs: Sequence[list[str]], documents: Sequence[list[str]], unknown: str | None, seed: int
) -> dict[str, SufficientStatistics]:
    flat_outputs, flat_documents = (
        [replace_mark(" ".join(document), unknown, UNKNOWN_WORD) for document in system]
        for system in (outputs, documents)
    )
    # An unknown word is neither verb nor noun.
    sentences = (
        [[replace_mark(text, unknown, "") for text in texts] for texts in side] for side in (outputs, documents)
    )
    return {
        **bleu(flat_outputs, flat_documents, lowercase=True).statistics,
        **rouge(flat_outputs, flat_documents).statistics,
        **coherence(*sentences, seed=seed).statistics,
    }


def replace_mark(text: str, mark: str | None, other: str) -> str:
    """The text with another word for the mark of unknown words, where the tokenizer has one."""
    return text.replace(mark, other) if mark else text


def reconstruction_by_length(outputs: Sequence[str], originals: Sequence[str]) -> tuple[Group, ...]:
    """The share of documents that come back word for word, for each length in words, ten lengths together."""
    bins: dict[int, list[bool]] = {}
    for output, original in zip(outputs, originals, strict=True):
        bins.setdefault(len(original.split()) // BIN, []).append(output == original)
    return tuple(
        Group("words", BIN * number, len(exact), (Score("exact", sum(exact) / len(exact)),))
        for number, exact in sorted(bins.items())
    )


def format_document_results(results: Results) -> str:
    """The scores as text: the model, the baselines and the paper's rows, a line each."""
    (own,), counts = results.of("model"), results.data.counts
    unaligned = "; ".join(
        f"{entry.system}: {entry.counts['unaligned']:,} of {entry.counts['sentences']:,}"
        for entry in (own, *results.of("baseline"))
    )
    rates = ", ".join(f"{group.value}+: {group.scores[0].score:.1%}" for group in own.groups)
    return format_scores(
        results,
        2,
        f"scored against the documents as the tokenizer gives them back, {counts['unknown']:,} of their "
        f"{counts['words']:,} words unknown",
        f"sentences without a verb or noun of the document, aligned at random for coherence: {unaligned}",
        f"exact reconstructions by words: {rates}",
    )


@in_style
def plot_reconstruction(results: Mapping[str, Results], path: str | os.PathLike) -> None:
    """Draw the rate of exact reconstructions over the documents' lengths as PNG, a curve for each result by its
    name."""
    figure = new_figure()
    axes = figure.subplots()
    for name, result in results.items():
        (own,) = result.of("model")
        middles = [group.value + BIN / 2 for group in own.groups]
        axes.plot(middles, [100 * group.scores[0].score for group in own.groups], marker="o", label=name)
    axes.set(xlabel="words of the document", ylabel="exact reconstructions, %", ylim=(0, None))
    axes.grid(True)
    add_legend(axes)
    save_figure(figure, path)
