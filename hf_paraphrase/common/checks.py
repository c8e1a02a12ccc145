"""Checks of single arguments, with one message for each kind."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from .errors import InputError


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """Return a whole number of any type, such as NumPy's, as an int; else, or below `least`, raise InputError."""
    if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
        limit = "" if least is None else f" of at least {least}"
        raise InputError(f"`{name}` must be a whole number{limit}, not {value!r}")
    return int(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number of any type, such as NumPy's; True and False are not numbers here."""
    return isinstance(value, Real) and not isinstance(value, bool)
