from __future__ import annotations

from typing import Any

import evaluate
from datasets import Features, Value

from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.nits_per_character.scoring import nits_per_character
from hf_paraphrase.metrics.text_metric import CheckedMetric

__all__ = ["NitsPerCharacter"]

_DESCRIPTION = """
Nits per character: the summed negative log-likelihood of texts, in nats, divided by the number of their characters.
Comparable between models over words and over characters. Lower is better.
"""

_INPUTS = """
Args:
    losses: for each text the summed negative log-likelihood, natural logarithm
    characters: for each text the number of its characters
Returns:
    nits_per_character, bits_per_character, loss, characters
Example:
    >>> load_metric("nits_per_character").compute(losses=[6.0, 4.0], characters=[3, 5])["nits_per_character"]
    1.25
"""

_CITATION = """
@mastersthesis{traynor-2018, title = {Unsupervised paraphrase generation from hierarchical language models},
  author = {Traynor, Michael}, school = {Dalhousie University}, year = {2018}}
"""

_FEATURES = Features({"losses": Value("float64"), "characters": Value("int64")})


class NitsPerCharacter(CheckedMetric):
    """Loss per character, in nats and bits."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=_FEATURES,
        )

    @staticmethod
    def _check(*, losses: Any, characters: Any) -> dict[str, list]:
        losses, characters = check_losses(losses, "characters", characters)
        return {"losses": losses, "characters": characters}

    def _compute(self, *, losses: list, characters: list, **options: Any) -> dict[str, Any]:
        return nits_per_character(losses, characters, **options)
