"""How much a stranger's file may ask for; the error names the environment variable that raises a bound."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from .errors import InputError

# Far above what published models and recipes have, and low enough that nothing below stalls or exhausts a machine.
BOUNDS = {
    "YAML_DEPTH": 100,
    "YAML_NODES": 100_000,
    "LAYERS": 1_000,
    "LABELS": 1_000_000,
    "WEIGHTS": 20_000_000_000,
    "BEAMS": 1_000,
    "NEW_TOKENS": 131_072,
    "RETRIEVER_PAIRS": 10_000_000,
    "RETRIEVER_BYTES": 8 * 2**30,
    "TOKENIZER_GROWTH": 256,
    "LINE_LENGTH": 2**28,
    "UNPACKED_BYTES": 16 * 2**30,
}
VARIABLE = "HF_PARAPHRASE_MAX_{}"
# Fields of which a model is built one part for each, and those from which transformers makes a list of labels.
LAYERS = re.compile(r"(layers?|heads?|experts?|blocks?|depths?|stages?|groups?|hash_functions)$")
# Never negative; for other sizes, -1 may mean none.
WIDTHS = re.compile(r"(vocab_size|hidden_size|intermediate_size|embedding_size|d_model|d_ff|d_kv|_dim|layers|heads)$")
LABELS = re.compile(r"num_labels$")
BEAMS = ("num_beams", "num_beam_groups", "num_return_sequences", "num_candidates", "num_neighbors")
TOKENS = (
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "prompt_lookup_num_tokens",
    "num_assistant_tokens",
)


def read_bound(name: str) -> int:
    """The bound of this name: the default, or the user's, which must be a whole number (InputError)."""
    variable = VARIABLE.format(name)
    value = os.environ.get(variable)
    if value is None:
        return BOUNDS[name]
    try:
        return int(value)
    except ValueError:
        raise InputError(f"{variable} must be a whole number, not {value!r:.100}") from None


def check_bound(name: str, value: float, what: str) -> None:
    """Raise InputError, beginning with `what` and saying how to raise it, where a value is above the bound `name`."""
    bound = read_bound(name)
    if not value <= bound:  # NaN is refused too
        raise InputError(
            f"{what} is {_format(value)}, above the limit of {bound:,}; "
            f"if you trust the file, set {VARIABLE.format(name)} to raise the limit"
        )


def check_model_sizes(values: Mapping[str, Any], source: str) -> None:
    """Refuse a configuration of a model, or of models within it, beyond the bounds of layers and labels or with
    negative sizes.

    Args:
        values: `config.json`.
        source: Names it in the error, an InputError that also names the field.
    """
    check_generation_sizes(values, source)  # which older configs have here, or by task in `task_specific_params`
    for name, value in values.items():
        if isinstance(value, Mapping):
            check_model_sizes(value, f"{source}: `{name}`")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if value < 0 and WIDTHS.search(name):
                raise InputError(f"{source}: `{name}` must not be {value}")
            for bound, pattern in (("LAYERS", LAYERS), ("LABELS", LABELS)):
                if pattern.search(name):
                    check_bound(bound, value, f"{source}: `{name}`")


def check_generation_sizes(values: Mapping[str, Any], source: str) -> None:
    """Refuse a generation configuration that asks for more beams or tokens than the bounds allow, or in words.

    Args:
        values: `generation_config.json`.
        source: Names it in the error, an InputError that also names the field.
    """
    for bound, names in (("BEAMS", BEAMS), ("NEW_TOKENS", TOKENS)):
        for name in names:
            value = values.get(name)
            if isinstance(value, str):
                raise InputError(f"{source}: `{name}` must be a number, not {value!r:.100}")
            if isinstance(value, int | float) and not isinstance(value, bool):
                check_bound(bound, value, f"{source}: `{name}`")


def _format(value: float) -> str:
    # Python refuses to print integers of more than 4,300 digits.
    return f"{value:,}" if abs(value) < 10**18 or value != value else "more than 10^18"
