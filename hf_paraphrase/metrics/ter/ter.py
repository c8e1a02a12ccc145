from __future__ import annotations

from typing import Any

import evaluate

from hf_paraphrase.metrics.ter.scoring import ter
from hf_paraphrase.metrics.text_metric import TEXT_FEATURES, TextMetric

__all__ = ["Ter"]

_DESCRIPTION = """
Corpus translation edit rate with sacrebleu's figures: insertions, deletions, substitutions and shifts of runs of words
that turn a prediction into its closest reference, divided by the mean length of its references. Lower is better.
"""

_INPUTS = """
Args:
    predictions: texts
    references: for each prediction a text or a list of texts, as many as there are
    normalized, no_punct, asian_support, case_sensitive: see `hf_paraphrase.metrics.ter.scoring.ter`
Returns:
    score, num_edits, ref_length, signature
Example:
    >>> load_metric("ter").compute(predictions=["b c d a"], references=["a b c d"])["score"]
    25.0
"""

_CITATION = """
@inproceedings{snover-etal-2006-study, title = {A study of translation edit rate with targeted human annotation},
  author = {Snover, Matthew and Dorr, Bonnie and Schwartz, Rich and Micciulla, Linnea and Makhoul, John},
  booktitle = {AMTA}, year = {2006}}
"""


class Ter(TextMetric):
    """Corpus TER with sacrebleu's signature."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=TEXT_FEATURES,
            codebase_urls=["https://github.com/mjpost/sacrebleu"],
            reference_urls=["https://aclanthology.org/2006.amta-papers.25"],
        )

    def _compute(self, *, predictions: list[str], references: list[list[str]], **options: Any) -> dict[str, Any]:
        return ter(predictions, references, **options)
