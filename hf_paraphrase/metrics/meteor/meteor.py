from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.meteor.scoring import meteor

__all__ = ["Meteor"]


class Meteor(CheckedMetric):
    """METEOR: METEOR by nltk, or METEOR 1.5 by its authors' Java program; the result names the variant.

    Words of the prediction are aligned to words of a reference by form, then by stem, then by synonym. The score
    weighs recall more than precision and falls as the matches break into chunks. The code is nltk's
    (https://github.com/nltk/nltk), or the authors' (https://www.cs.cmu.edu/~alavie/METEOR/), which MultEval,
    coco-caption and nlg-eval use; one Java process aligns the whole corpus.

    Examples:
        >>> metric = load_metric("meteor")
        >>> metric.compute(predictions=["a b c d"], references=["a b c d"], stages=("exact", "stem"))["score"]
        99.21875

    Limits:
        - Implementations differ by up to ten points: name the variant beside the score.
        - The WordNet stage of `nltk` needs WordNet: `python -m nltk.downloader wordnet`. Without it there is an error,
          never another metric under the same name.
        - nltk looks synonyms up by the stems of the words left over (`automobil`), so its WordNet stage finds fewer
          than one would think. Others report its scores, so this is kept.
        - `1.5` needs Java and the extra `meteor`; reading its paraphrase table takes some ten
          seconds and up to 2 GB.
    """

    function = staticmethod(meteor)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{lavie-agarwal-2007-meteor, title = {{METEOR}: an automatic metric for {MT} evaluation with high levels
  of correlation with human judgments}, author = {Lavie, Alon and Agarwal, Abhaya}, booktitle = {WMT}, year = {2007},
  url = {https://aclanthology.org/W07-0734}}
@inproceedings{denkowski-lavie-2014-meteor, title = {Meteor universal: language specific translation evaluation for any
  target language}, author = {Denkowski, Michael and Lavie, Alon}, booktitle = {WMT}, year = {2014},
  url = {https://aclanthology.org/W14-3348}}
"""
