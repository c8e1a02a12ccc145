from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.perplexity.scoring import perplexity


class Perplexity(CheckedMetric):
    function = staticmethod(perplexity)
    _check = staticmethod(lambda *, losses, tokens: check_losses(losses, "tokens", tokens))
    _citation = """
@article{jelinek-etal-1977-perplexity, title = {Perplexity: a measure of the difficulty of speech recognition tasks},
  author = {Jelinek, Fred and Mercer, Robert and Bahl, Lalit and Baker, James},
  journal = {Journal of the Acoustical Society of America}, year = {1977}}
"""
