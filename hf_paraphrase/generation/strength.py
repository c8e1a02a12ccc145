"""How far paraphrases are to differ from their text: what strength asks of candidates, whichever model wrote them."""

from __future__ import annotations

from dataclasses import replace

from ..errors import InputError
from ..models.text.control_tokens import check_strength
from .paraphrase_choice import Choice

__all__ = ["read_strength", "strengthen"]


def read_strength(strength: float | None) -> float | None:
    """Return a strength that is None or a number from 0 to 1; raise InputError for any other value."""
    try:
        check_strength(strength)
    except ValueError as error:
        raise InputError(str(error)) from None
    return strength


def strengthen(choice: Choice, strength: float) -> Choice:
    """Raise `min_novelty` and `diversity` of a choice to half the strength, where they are lower.

    Strength 0 changes nothing. At strength 1, half of a paraphrase's n-grams must be new, and similarity to the text
    and to the other paraphrases counts as much as the score. A larger strength never lowers either.

    Args:
        choice: What the caller asks for.
        strength: From 0 to 1.
    """
    floor = strength / 2
    return replace(choice, min_novelty=max(choice.min_novelty, floor), diversity=max(choice.diversity, floor))
