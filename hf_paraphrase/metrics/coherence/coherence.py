from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_paraphrase.metrics.coherence.scoring import coherence
from hf_paraphrase.metrics.inputs import check_lengths, check_text_lists
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["Coherence"]

_DESCRIPTION = """
Coherence L: every sentence of an output is aligned to a sentence of the input by its verbs and nouns, and L is the
mean difference between the distances of two sentences there and here. Lower is better.
"""

_INPUTS = """
Args:
    predictions: for each document the sentences of the output
    references: for each document the sentences of the input
    tagger, seed: see `hf_paraphrase.metrics.coherence.scoring.coherence`
Returns:
    score, documents, unaligned, sentences, features, signature
Example:
    >>> metric = load_metric("coherence")
    >>> metric.compute(predictions=[["cats sleep", "dogs run"]], references=[["dogs run", "cats sleep"]])["score"]
    2.0
"""

_CITATION = """
@inproceedings{li-etal-2015-hierarchical, title = {A hierarchical neural autoencoder for paragraphs and documents},
  author = {Li, Jiwei and Luong, Minh-Thang and Jurafsky, Dan}, booktitle = {ACL}, year = {2015}}
"""

_FEATURES = Features({"predictions": List(Value("string")), "references": List(Value("string"))})


class Coherence(CheckedMetric):
    """Order of the sentences of an output against its input."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
            reference_urls=["https://aclanthology.org/P15-1107"],
        )

    @staticmethod
    def _check(*, predictions: Any, references: Any) -> dict[str, list]:
        predictions = check_text_lists("predictions", predictions)
        references = check_text_lists("references", references, minimum=1)
        check_lengths(predictions=predictions, references=references)
        return {"predictions": predictions, "references": references}

    def _compute(self, *, predictions: list, references: list, **options: Any) -> dict[str, Any]:
        return coherence(predictions, references, **options)
