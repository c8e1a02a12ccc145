from __future__ import annotations

from typing import Any

import evaluate

from hf_paraphrase.metrics.meteor.scoring import meteor
from hf_paraphrase.metrics.text_metric import TEXT_FEATURES, TextMetric

__all__ = ["Meteor"]

_DESCRIPTION = """
METEOR: unigram matches by form, stem and synonym, weighted towards recall, less a penalty for broken order; nltk's, or
version 1.5 by its authors' Java program. The two differ by up to ten points, so the result names the variant.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    variant, stages, tokenize, jar, normalize: see `hf_paraphrase.metrics.meteor.scoring.meteor`
Returns:
    score, variant, signature
Example:
    >>> metric = load_metric("meteor")
    >>> metric.compute(predictions=["a b c d"], references=["a b c d"], stages=("exact", "stem"))["score"]
    99.21875
"""

_CITATION = """
@inproceedings{lavie-agarwal-2007-meteor, title = {{METEOR}: an automatic metric for {MT} evaluation with high levels
  of correlation with human judgments}, author = {Lavie, Alon and Agarwal, Abhaya}, booktitle = {WMT}, year = {2007}}
@inproceedings{denkowski-lavie-2014-meteor, title = {Meteor universal: language specific translation evaluation for any
  target language}, author = {Denkowski, Michael and Lavie, Alon}, booktitle = {WMT}, year = {2014}}
"""


class Meteor(TextMetric):
    """METEOR, variant named."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=TEXT_FEATURES,
            codebase_urls=["https://github.com/nltk/nltk", "https://www.cs.cmu.edu/~alavie/METEOR/"],
            reference_urls=["https://aclanthology.org/W07-0734", "https://aclanthology.org/W14-3348"],
        )

    def _compute(self, *, predictions: list[str], references: list[list[str]], **options: Any) -> dict[str, Any]:
        return meteor(predictions, references, **options)
