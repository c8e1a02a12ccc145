from __future__ import annotations

from typing import Any

import evaluate

from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.text_metric import TEXT_FEATURES, TextMetric

__all__ = ["EmbeddingGreedy"]

_DESCRIPTION = """
Similarity of word vectors: each word of one text greedily matched with the most similar word of the other, both
directions averaged; and the cosines of the average and of the extrema vectors of the texts.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    word_vectors: a file of word vectors (text, or word2vec's `.bin`), `WordVectors`, or gensim's KeyedVectors
    tokenize, lowercase: see `hf_paraphrase.metrics.embedding_greedy.scoring.embedding_greedy`
Returns:
    score, average, extrema, signature
Example:
    >>> metric = load_metric("embedding_greedy")
    >>> metric.compute(predictions=["a dog"], references=["a puppy"], word_vectors="glove.6B.300d.txt")["score"]
"""

_CITATION = """
@inproceedings{rus-lintean-2012-comparison, title = {A comparison of greedy and optimal assessment of natural language
  student input using word-to-word similarity metrics}, author = {Rus, Vasile and Lintean, Mihai}, booktitle = {BEA},
  year = {2012}}
"""


class EmbeddingGreedy(TextMetric):
    """Greedy matching, average and extrema of word vectors."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=TEXT_FEATURES,
            reference_urls=["https://aclanthology.org/W12-2018"],
        )

    def _compute(self, *, predictions: list[str], references: list[list[str]], **options: Any) -> dict[str, Any]:
        return embedding_greedy(predictions, references, **options)
