from __future__ import annotations

from typing import Any

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.nits_per_character.scoring import nits_per_character

__all__ = ["NitsPerCharacter"]


class NitsPerCharacter(CheckedMetric):
    """Nits per character: the loss of a language model, in nats, divided by the number of characters.

    Comparable between models of characters and models of words. Lower is better.

    Examples:
        >>> load_metric("nits_per_character").compute(losses=[6.0, 4.0], characters=[3, 5])["nits_per_character"]
        1.25

    Limits:
        - Give sums: means of batches of different sizes do not average.
        - Say whether end marks count as characters; they must if they were predicted.
    """

    function = staticmethod(nits_per_character)
    _citation = """
@mastersthesis{traynor-2018, title = {Unsupervised paraphrase generation from hierarchical language models},
  author = {Traynor, Michael}, school = {Dalhousie University}, year = {2018}}
"""

    @staticmethod
    def _check(*, losses: Any, characters: Any) -> tuple[list, list]:
        return check_losses(losses, "characters", characters)
