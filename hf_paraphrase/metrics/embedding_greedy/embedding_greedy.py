from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.inputs import check_texts

__all__ = ["EmbeddingGreedy"]


class EmbeddingGreedy(CheckedMetric):
    """Embedding greedy: greedy matching of word vectors; also the average and the extrema of the vectors.

    Greedy matching takes for every word of one text the largest cosine with a word of the other, 0 where all are
    negative, and averages over the words and over both directions. `average` and `extrema` are the cosines of the
    texts' mean vectors, and of the vectors that hold in every dimension the number farthest from 0.

    Examples:
        >>> metric = load_metric("embedding_greedy")
        >>> scores = metric.compute(predictions=["a dog"], references=["a puppy"], word_vectors="glove.6B.300d.txt")

    Limits:
        - Scores depend on the vectors more than on the texts: in 50 dimensions all sentences are alike.
    """

    function = staticmethod(embedding_greedy)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{rus-lintean-2012-comparison, title = {A comparison of greedy and optimal assessment of natural language
  student input using word-to-word similarity metrics}, author = {Rus, Vasile and Lintean, Mihai}, booktitle = {BEA},
  year = {2012}, url = {https://aclanthology.org/W12-2018}}
@inproceedings{forgues-etal-2014-bootstrapping, title = {Bootstrapping dialog systems with word embeddings},
  author = {Forgues, Gabriel and Pineau, Joelle and Larchevêque, Jean-Marie and Tremblay, Réal},
  booktitle = {NIPS workshop on modern machine learning and natural language processing}, year = {2014}}
"""
