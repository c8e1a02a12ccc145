"""What a model that embeds sentences makes of them: how much of their content it keeps, and how much it copies."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.files import read_lines
from ..metrics.pinc.scoring import pinc
from ..metrics.sufficient_statistics import SufficientStatistics
from ..models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from ..models.search.embedding_paraphraser import EmbeddingParaphraser, ParaphraseCandidate
from ..training.tasks.language_model import encode_documents
from .results import Entry, Results, describe_data, describe_model
from .scoring import Scoring, save_results

# The most frequent words of a split are those of its language, not of a sentence's content.
FUNCTION_WORDS = 100
WORD = re.compile(r"[^\W\d_]+")
CHANCE = "another sentence of the split"


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
