from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_text_lists
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu


class SelfBleu(CheckedMetric):
    function = staticmethod(self_bleu)
    _check = staticmethod(lambda *, predictions: (check_text_lists("predictions", predictions, minimum=2),))
