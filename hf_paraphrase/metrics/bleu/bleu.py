from __future__ import annotations

from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts

__all__ = ["Bleu"]


class Bleu(CheckedMetric):
    """BLEU: corpus BLEU by sacrebleu, with its signature and, on request, a bootstrap confidence interval.

    The geometric mean of the n-gram precisions of a corpus, times a penalty where the predictions are shorter in total
    than the closest references. Each n-gram counts at most as often as in the reference that holds it most often.
    The code is sacrebleu (https://github.com/mjpost/sacrebleu), smoothing `exp`.

    Examples:
        >>> load_metric("bleu").compute(predictions=["a b c d e"], references=[["a b c d f", "e"]])["precisions"]
        [100.0, 75.0, 66.66666666666667, 50.0]

    Limits: - In paraphrasing, copying the input often has a high BLEU: report that baseline too.
        - More references raise the score. Signatures state number of references, case and tokenizer, not `max_order`.
        - The interval covers the choice of test sentences, not the training seed.
        - Resampling holds `n_bootstrap` × rows × (2 + 2 · `max_order`) numbers of four bytes: 0.8 GB for 1,000 samples
          of 20,000 rows.
    """

    function = staticmethod(bleu)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{papineni-etal-2002-bleu, title = {BLEU: a method for automatic evaluation of machine translation},
  author = {Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing}, booktitle = {ACL}, year = {2002},
  url = {https://aclanthology.org/P02-1040}}
@inproceedings{post-2018-call, title = {A call for clarity in reporting BLEU scores}, author = {Post, Matt},
  booktitle = {WMT}, year = {2018}, url = {https://aclanthology.org/W18-6319}}
@inproceedings{koehn-2004-statistical, title = {Statistical significance tests for machine translation evaluation},
  author = {Koehn, Philipp}, booktitle = {EMNLP}, year = {2004}, url = {https://aclanthology.org/W04-3250}}
"""
