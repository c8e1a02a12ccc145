"""How far paraphrases are to differ from their text: what strength asks of candidates, whichever model wrote them."""

from __future__ import annotations

from dataclasses import replace

from ..errors import InputError
from ..models.text.encoded_inputs import check_strength
from .paraphrase_choice import Choice


def read_strength(strength: float | None) -> float | None:
    """Return a strength that is None or a number from 0 to 1; raise InputError for any other value."""
    try:
        check_strength(strength)
    except ValueError as error:
        raise InputError(str(error)) from None
    return strength


def strengthen(choice: Choice, strength: float) -> Choice:
    """Raise `wanted_novelty` of a choice to 0.6 times the strength, from 0 to 1, where it is lower.

    At strength 1, the score of a candidate falls unless 60% of its n-grams are new, so that a closer one is chosen
    only where it is much better, or none is so free.
    """
    return replace(choice, wanted_novelty=max(choice.wanted_novelty, 0.6 * strength))
