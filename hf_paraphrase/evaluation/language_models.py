"""How well language models of sentences predict a split, and how much of a sentence their rewordings keep or copy."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.files import read_lines
from ..generation.loading import load_paraphraser
from ..metrics.nits_per_character.scoring import nits_per_character
from ..metrics.pinc.scoring import pinc
from ..metrics.sufficient_statistics import SufficientStatistics
from ..models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from ..models.layers.precision import at_least_single
from ..models.search.embedding_paraphraser import EmbeddingParaphraser, ParaphraseCandidate
from ..training.batching import PairCollator
from ..training.tasks.language_model import encode_documents
from .results import Entry, Results, describe_data, describe_model
from .scoring import Scoring, load_given, save_results

# The most frequent words of a split are those of its language, not of a sentence's content.
FUNCTION_WORDS = 100
WORD = re.compile(r"[^\W\d_]+")
CHANCE = "another sentence of the split"


@torch.inference_mode()
def evaluate_language_model(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    objective: str = "next_sentence",
    max_samples: int | None = None,
    batch_size: int = 64,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
) -> Results:
    """Score what follows every sentence, or the sentence itself, in nits per character.

    Args:
        model: A hierarchical language model, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `sentences`.
        objective: "next_sentence" or "autoencode", as the model was trained.
        max_samples: Maximum number of examples, evenly spaced over the documents.
        batch_size: Examples at once.
        n_samples, seed, split, data, trust_remote_code: As of `evaluate_paraphraser`.
        output_dir: Where to write `losses-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.

    Returns:
        The content of the file: one entry, with `nits_per_character`. Its rows are examples; `characters` are counted
            too.

    Raises:
        InputError: There is no example.
    """
    model, tokenizer = load_given(model, tokenizer, load_paraphraser, trust_remote_code)
    model.eval()
    rows = encode_documents(dataset, cast(HierarchicalLmTokenizer, tokenizer), objective, max_samples)
    found = describe_data(data, split, len(rows))
    collate, losses, characters = PairCollator(tokenizer.pad_token_id), [], []
    for start in range(0, len(rows), batch_size):
        part = rows.__getitems__(list(range(start, min(start + batch_size, len(rows)))))
        batch = {name: tensor.to(model.device) for name, tensor in collate(part).items()}
        logits = at_least_single(model(**batch).logits)
        losses += cross_entropy(logits.transpose(1, 2), batch["labels"], reduction="none").sum(dim=1).tolist()
        characters += [len(row["labels"]) for row in part]
    scores = Scoring(n_samples=n_samples, seed=seed).measure(nits_per_character(losses, characters).statistics)
    results = Results(
        "language_model",
        replace(found, counts={"characters": sum(characters)}),
        (describe_model(model, scores, objective=objective, outputs=output_dir and f"losses-{split}.jsonl"),),
        {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)},
    )
    rows = ({"loss": loss, "characters": count} for loss, count in zip(losses, characters, strict=True))
    return save_results(results, output_dir, losses=rows)


def format_language_model_results(results: Results) -> str:
    """The score as text."""
    (entry,) = results.of("model")
    (score,) = entry.scores
    return (
        f"{results.data.path}, split {results.data.split}, {results.data.rows:,} examples of {entry.objective}\n"
        f"nits per character: {score.score:.3f} ({score.low:.3f} to {score.high:.3f})"
    )


def read_language_model_statistics(file: Path) -> dict[str, SufficientStatistics]:
    """The statistics of the scores that `evaluate_language_model` computed, from the file of losses that it wrote."""
    rows = read_lines(file)
    return nits_per_character([row["loss"] for row in rows], [row["characters"] for row in rows]).statistics


def evaluate_rewriting(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Dataset,
    *,
    max_samples: int | None = 500,
    num_candidates: int = 40,
    temperature: float | Literal["uniform"] = "uniform",
    noise: float | Literal["uniform"] = "uniform",
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
) -> Results:
    """Rewrite sentences, each by the nearest of its candidates that is not the sentence itself.

    The thesis lets a person choose; the distance of sentence vectors is what it ranks by (Traynor 2018, section 4.5).
    The baseline gives each sentence another one, which keeps its content by chance alone.

    Args:
        model: An `EmbeddingParaphraser`.
        tokenizer: Its tokenizer.
        documents: Rows of `sentences`.
        max_samples: At most so many sentences, evenly spaced over the documents; None for all.
        num_candidates: Written of each sentence.
        temperature: As `EmbeddingParaphraser.paraphrase` takes it.
        noise: The same.
        n_samples, split, data: As of `evaluate_paraphraser`.
        seed: Of the resampling, and of what is drawn.
        output_dir: Where to write `rewritings-SPLIT.jsonl` and `results-SPLIT.json`; None to write nothing.

    Returns:
        What the file holds: the model's entry and the baseline's, each with `content_words_kept`, the share of the
        sentences' words that stand in their rewritings too, but for the 100 most frequent words of the split; `pinc`;
        and `copied`, the share of sentences of which the nearest candidate is the sentence itself.

    Raises:
        InputError: There is no sentence.
    """
    model.eval()
    encoded = encode_documents(documents, cast(HierarchicalLmTokenizer, tokenizer), "autoencode", max_samples)
    sources = tokenizer.batch_decode(encoded["input_ids"][:], skip_special_tokens=True)
    frequent = _find_frequent(chain.from_iterable(documents["sentences"]))
    options: dict[str, Any] = {"num_candidates": num_candidates, "temperature": temperature, "noise": noise}
    written = cast(EmbeddingParaphraser, model).paraphrase(sources, tokenizer, seed=seed, **options)
    candidates = cast(list[list[ParaphraseCandidate]], written)
    changed = [next((each.text for each in found if not each.is_copy), "") for found in candidates]
    copied = [bool(found) and found[0].is_copy for found in candidates]
    rows = [_count(*row, frequent) for row in zip(sources, changed, copied, strict=True)]
    others = np.random.default_rng(seed).permutation(len(sources))
    chance = [
        _count(source, sources[other], source == sources[other], frequent)
        for source, other in zip(sources, others, strict=True)
    ]
    scoring = Scoring(n_samples=n_samples, seed=seed)
    scores, by_chance = (scoring.measure(_statistics(each)) for each in (rows, chance))
    results = Results(
        "paraphrases",
        describe_data(data, split, len(rows)),
        (
            describe_model(model, scores, outputs=output_dir and f"rewritings-{split}.jsonl"),
            Entry(CHANCE, "baseline", by_chance),
        ),
        {**options, **describe_environment(model.device)},
    )
    return save_results(results, output_dir, rewritings=rows)


def read_rewriting_statistics(file: Path) -> dict[str, SufficientStatistics]:
    """The statistics of the scores that `evaluate_rewriting` computed, from the file of outputs that it wrote."""
    return _statistics(read_lines(file))


def _statistics(rows: Sequence[Mapping[str, Any]]) -> dict[str, SufficientStatistics]:
    kept, count, copied = ([row[name] for row in rows] for name in ("kept", "content_words", "copied"))
    texts = ([row[name] for row in rows] for name in ("prediction", "source"))
    signature = f"words:letters|case:lc|but:{FUNCTION_WORDS} most frequent"
    return {
        "content_words_kept": SufficientStatistics.from_ratio("content_words_kept", kept, count, signature, scale=100),
        **pinc(*texts, lowercase=True).statistics,
        "copied": SufficientStatistics.from_sentence_scores("copied", copied, "", scale=100, higher_is_better=False),
    }


def _count(source: str, prediction: str, copied: bool, frequent: set[str]) -> dict[str, Any]:
    content = set(_split(source)) - frequent
    kept = len(content.intersection(_split(prediction)))
    texts = {"source": source, "prediction": prediction, "copied": copied}
    return {**texts, "content_words": len(content), "kept": kept}


def _find_frequent(sentences: Iterable[str]) -> set[str]:
    counts = Counter(chain.from_iterable(map(_split, sentences)))
    return {word for word, _ in counts.most_common(FUNCTION_WORDS)}


def _split(text: str) -> list[str]:
    return WORD.findall(text.lower())
