"""The ways of decoding that a pipeline offers by name, beside transformers' own.

`model_cards/DECODING.md` has a table of what each gives: doubles, copies of the source, BLEU and self-BLEU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .dips import dips
from .diverse_beam_search import diverse_beam_search

__all__ = ["DECODINGS", "asks_for_groups", "find_decoding"]

DECODINGS = {"beam": None, "diverse_beam": diverse_beam_search, "dips": dips}


def find_decoding(decoding: str | Callable | None) -> Callable | None:
    """What `generate(custom_generate=…)` takes: None for transformers' own decoding; a function is used as it is.

    Raises:
        ValueError: There is none of this name.
    """
    if decoding is None or callable(decoding):
        return decoding
    if not isinstance(decoding, str) or decoding not in DECODINGS:
        raise ValueError(f"`decoding` must be one of {', '.join(DECODINGS)}, or a function, not {decoding!r}")
    return DECODINGS[decoding]


def asks_for_groups(parameters: Mapping[str, Any]) -> bool:
    """Tell whether generation parameters ask for diverse beam search, as transformers 4 read them."""
    return (parameters.get("num_beam_groups") or 1) > 1 or bool(parameters.get("diversity_penalty"))
