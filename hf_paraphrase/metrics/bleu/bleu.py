from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts


class Bleu(CheckedMetric):
    function = staticmethod(bleu)
    _check = staticmethod(check_texts)
