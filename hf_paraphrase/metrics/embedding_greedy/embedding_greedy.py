from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.inputs import check_texts


class EmbeddingGreedy(CheckedMetric):
    function = staticmethod(embedding_greedy)
    _check = staticmethod(check_texts)
