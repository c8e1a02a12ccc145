from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.coherence.scoring import check_documents, coherence


class Coherence(CheckedMetric):
    function = staticmethod(coherence)
    _check = staticmethod(check_documents)
