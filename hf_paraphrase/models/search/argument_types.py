"""Types of generation arguments, so that a wrong type is reported by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Set
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, cast

from transformers import GenerationConfig, PreTrainedModel

__all__ = ["check_argument_names", "check_arguments", "plain_number", "refuse_misspelt"]

COUNTS = {"num_beams", "num_return_sequences", "max_new_tokens", "max_length", "num_beam_groups"}
COUNTS |= {"num_candidates", "num_neighbors", "candidates_per_beam", "batch_size"}
# Whole numbers, of which 0 asks for nothing.
SWITCHED_COUNTS = {"top_k", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_new_tokens", "min_length"}
NUMBERS = {"top_p", "diversity_penalty", "fidelity"}
# Of which transformers takes no whole number.
PENALTIES = {"repetition_penalty", "encoder_repetition_penalty"}
# Which some decodings draw themselves, where it is a word.
DRAWN = {"temperature", "noise"}
TRUTHS = {"do_sample", "replace_unknown", "restore_surface", "return_tensors", "return_text", "return_retrieved"}
TEXTS = {"stop_sequence"}
TOKENS = {"eos_token_id", "pad_token_id", "bos_token_id", "decoder_start_token_id"}


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of the wrong type; None and unknown names are accepted.

    Args:
        arguments: Of a pipeline, or of `generate()`.

    Raises:
        ValueError: With the argument's name.
    """
    for name, value in arguments.items():
        if value is None:
            continue
        if name in COUNTS | SWITCHED_COUNTS:
            least = int(name in COUNTS)
            _check(name, value, _is_whole(value), "must be a whole number")
            _check(name, value, value >= least, f"must be at least {least}")
        elif name in PENALTIES:
            _check(name, value, isinstance(value, float) and value > 0, "must be a float above 0")
        elif name == "length_penalty":
            # Lengths to the power of more than that are not floats.
            _check(name, value, _is_number(value) and abs(value) <= 100, "must be a number from -100 to 100")
        elif name in NUMBERS or (name in DRAWN and not isinstance(value, str)):
            _check(name, value, _is_number(value), "must be a number")
        elif name in TRUTHS:
            _check(name, value, isinstance(value, bool), "must be True or False")
        elif name in TEXTS:
            _check(name, value, isinstance(value, str), "must be a text")
        elif name in TOKENS:
            ids = value if isinstance(value, list) and value else [value]
            _check(name, value, all(map(_is_whole, ids)), "must be the number of a token, or several")
        elif name == "generation_config":
            _check(name, value, isinstance(value, GenerationConfig), "must be a GenerationConfig")


def check_argument_names(names: Iterable[str], own: Iterable[str], model: PreTrainedModel) -> None:
    """Refuse misspelt arguments; names unlike all known ones may belong to a custom search, and `generate()` decides.

    Args:
        names: The arguments meant for `generate()`.
        own: The caller's other arguments.
        model: Its `generate()` and `forward()` take further ones.

    Raises:
        ValueError: With the closest names.
    """
    known = COUNTS | SWITCHED_COUNTS | NUMBERS | PENALTIES | DRAWN | TRUTHS | TEXTS | TOKENS | {*own}
    known |= vars(GenerationConfig()).keys()
    if known.issuperset(names := [*names]):
        return
    for function in (model.generate, model.forward):
        known |= inspect.signature(cast(Callable, function)).parameters.keys()
    refuse_misspelt(names, known)


def refuse_misspelt(names: Iterable[str], known: Set[str]) -> None:
    """Raise a ValueError for the first name that is unknown but close to known ones, which its message lists."""
    for name in names:
        if name not in known and (close := get_close_matches(name, known, n=3, cutoff=0.8)):
            raise ValueError(f"unknown argument `{name}`; did you mean {' or '.join(f'`{one}`' for one in close)}?")


def plain_number(value: Any) -> Any:
    """Return a number of any type, such as NumPy's, as an int or a float; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _check(name: str, value: Any, is_right: bool, expected: str) -> None:
    if not is_right:
        raise ValueError(f"`{name}` {expected}, not {value!r:.100}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
