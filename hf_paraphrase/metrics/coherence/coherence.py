from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.coherence.scoring import check_documents, coherence

__all__ = ["Coherence"]


class Coherence(CheckedMetric):
    """Coherence: L, how far the sentences of an output are from the order of their originals; lower is better.

    Each sentence of an output is aligned to the sentence of the input with the best F1 over verbs and nouns. L is the
    mean, over the pairs of output sentences, of how much their distance differs from that of their originals: 0 where
    the order is kept, 1.6 where two sentences are off by 1.6 places on average.

    Examples:
        >>> metric = load_metric("coherence")
        >>> metric.compute(predictions=[["cats sleep", "dogs run"]], references=[["dogs run", "cats sleep"]])["score"]
        2.0

    Limits:
        - Without a tagger the alignment uses all words except function words, and `features` says so. To get nltk's:
          `python -m nltk.downloader averaged_perceptron_tagger_eng`. For spaCy pass
          `lambda text: [t.lemma_ for t in nlp(text) if t.pos_ in ("VERB", "NOUN", "PROPN")]`.
        - An output sentence that shares no feature with the input costs coherence, since it is aligned at random, as
          in the paper: read `unaligned` beside the score.
        - An output of one sentence has no order: read `documents` beside the score.
    """

    function = staticmethod(coherence)
    _check = staticmethod(check_documents)
    _citation = """
@inproceedings{li-etal-2015-hierarchical, title = {A hierarchical neural autoencoder for paragraphs and documents},
  author = {Li, Jiwei and Luong, Minh-Thang and Jurafsky, Dan}, booktitle = {ACL}, year = {2015},
  url = {https://aclanthology.org/P15-1107}}
"""
