from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.checked_metric import CheckedMetric


class Bleu(CheckedMetric):
    function = staticmethod(bleu)
