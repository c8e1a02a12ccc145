from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import InputError

__all__ = ["parse_pairs"]


def parse_pairs(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Read the values of a repeatable option `KEY=VALUE` as a recipe file would.

    Args:
        option: The option's name, for errors.
        pairs: Its values.

    Raises:
        InputError: One of them has no `=`.
    """
    from .training.fields import parse_scalar

    parsed = {}
    for pair in pairs:
        key, has_value, value = pair.partition("=")
        if not has_value:
            raise InputError(f"{option} takes KEY=VALUE, got {pair!r}")
        parsed[key] = parse_scalar(value)
    return parsed
