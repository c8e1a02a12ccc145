from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.perplexity.scoring import perplexity


class Perplexity(CheckedMetric):
    function = staticmethod(perplexity)
    _check = staticmethod(lambda *, losses, tokens: check_losses(losses, "tokens", tokens))
