"""The metrics against the libraries that they wrap or that first had them."""

from __future__ import annotations

import random
import statistics
from functools import partial
from itertools import chain

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, TER

from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.rouge.scoring import rouge
from hf_paraphrase.metrics.significance import bootstrap
from hf_paraphrase.metrics.ter.scoring import ter
from hf_paraphrase.tokenization.word_vectors import WordVectors

from .timing import Row, in_turn, seconds


def make_captions(rows: int, n_references: int = 4) -> tuple[list[str], list[list[str]]]:
    """Predictions and references of caption length that share words as captions of one picture do."""
    draw = random.Random(0)
    vocabulary = [f"w{number}" for number in range(5000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]

    def describe(topic: list[str]) -> str:
        kept = [word for word in topic if draw.random() < 0.6]
        if draw.random() < 0.5:
            middle = draw.randrange(len(kept) + 1)
            kept = kept[middle:] + kept[:middle]
        for word in draw.choices(vocabulary, weights, k=draw.randint(2, 6)):
            kept.insert(draw.randrange(len(kept) + 1), word)
        return " ".join(kept)

    topics = [draw.choices(vocabulary, weights, k=11) for _ in range(rows)]
    return [describe(topic) for topic in topics], [[describe(topic) for _ in range(n_references)] for topic in topics]


def match_greedily(words: list[str], others: list[str], vectors: dict[str, np.ndarray]) -> float:
    """Greedy matching as its script does it, one pair of sentences at a time."""
    columns = np.stack([vectors[word] for word in others], axis=1)
    return float(np.mean([np.max(vectors[word] @ columns) for word in words]))


def benchmark_metrics(device: str, repeats: int) -> list[Row]:
    """Metrics of 20,000 predictions with four references each, and 1,000 bootstrap samples of each metric.

    What these samples would cost without statistics is a thousand times what the library takes for the corpus.
    """
    predictions, references = make_captions(20_000)
    streams = list(zip(*references, strict=True))
    names = sorted({word for text in (*predictions, *chain(*references)) for word in text.split()})
    table = np.random.default_rng(0).normal(size=(len(names), 100))
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    word_vectors, by_word = (
        WordVectors({name: i for i, name in enumerate(names)}, table),
        dict(zip(names, table, strict=True)),
    )
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])

    def score_greedily() -> list[float]:
        return [
            max(match_greedily(*pair, by_word) + match_greedily(*pair[::-1], by_word) for pair in pairs) / 2
            for pairs in (
                [(text.split(), other.split()) for other in others]
                for text, others in zip(predictions, references, strict=True)
            )
        ]

    metrics = {
        "BLEU": ("sacrebleu", bleu, {}, lambda: BLEU(force=True).corpus_score(predictions, streams)),
        "TER": ("sacrebleu", ter, {}, lambda: TER().corpus_score(predictions, streams)),
        "ROUGE, ours with W": (
            "rouge-score",
            rouge,
            {},
            lambda: list(map(scorer.score_multi, references, predictions)),
        ),
        "embedding greedy": (
            "a loop over the pairs",
            embedding_greedy,
            {"word_vectors": word_vectors, "tokenize": "none"},
            score_greedily,
        ),
    }
    rows = []
    for name, (against, compute, options, theirs) in metrics.items():
        compute = partial(compute, predictions, references, **options)
        ours, library, ratio = in_turn(compute, theirs, repeats, "cpu")
        rows.append((f"{name}, s", against, f"{ours:.2f}", f"{library:.2f}", f"{ratio:.2f}"))
        resample = partial(bootstrap, next(iter(compute().statistics.values())), n_samples=1000)
        resampled = statistics.median(seconds(resample, "cpu") for _ in range(repeats))
        again = 1000 * library
        figures = (f"{resampled:.2f}", f"{again:,.0f}", f"{again / resampled:,.0f}")
        rows.append(("  1,000 samples of it, s", "as many runs of it", *figures))
    return rows
