from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy


class EmbeddingGreedy(CheckedMetric):
    function = staticmethod(embedding_greedy)
