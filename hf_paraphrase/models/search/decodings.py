"""The ways of decoding that a pipeline offers by name.

`model_cards/DECODING.md` compares them by duplicates, copies of the source, BLEU and self-BLEU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from transformers import GenerationConfig
from transformers.generation import GenerationMode

from .beam_search import beam_search
from .dips import dips
from .diverse_beam_search import diverse_beam_search

__all__ = ["DECODINGS", "asks_for_beams", "asks_for_groups", "find_decoding"]

# What `generate()` does not hand on to a search of another's.
FOR_ITS_OWN_SEARCH = ("assistant_model", "assistant_tokenizer", "streamer", "synced_gpus", "tokenizer")

DECODINGS: dict[str, Callable] = {"beam": beam_search, "diverse_beam": diverse_beam_search, "dips": dips}


def find_decoding(decoding: str | Callable | None) -> Callable | None:
    """What `generate(custom_generate=…)` takes: None for transformers' own decoding; a function is used as it is.

    Raises:
        ValueError: Unknown decoding.
    """
    if decoding is None or callable(decoding):
        return decoding
    if not isinstance(decoding, str) or decoding not in DECODINGS:
        raise ValueError(f"`decoding` must be one of {', '.join(DECODINGS)}, or a function, not {decoding!r}")
    return DECODINGS[decoding]


def asks_for_groups(parameters: Mapping[str, Any]) -> bool:
    """Whether generation parameters ask for diverse beam search, by transformers 4's rules."""
    return (parameters.get("num_beam_groups") or 1) > 1 or bool(parameters.get("diversity_penalty"))


def asks_for_beams(parameters: Mapping[str, Any]) -> bool:
    """Whether `generate()` would run its own beam search with these parameters."""
    if any(parameters.get(name) is not None for name in FOR_ITS_OWN_SEARCH):
        return False
    config = GenerationConfig()
    names = vars(config).keys() & parameters.keys()
    vars(config).update({name: parameters[name] for name in names})
    return config.get_generation_mode() == GenerationMode.BEAM_SEARCH
