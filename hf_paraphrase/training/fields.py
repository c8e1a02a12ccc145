from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import yaml
from huggingface_hub.dataclasses import type_validator

from ..errors import InputError

__all__ = ["check_known", "check_type", "parse_scalar", "read_yaml"]


class _Yaml12Loader(yaml.SafeLoader):
    """YAML 1.2 scalars: `1e-3` is a number and `no` a word, where PyYAML's 1.1 reads a string and `False`."""

    yaml_implicit_resolvers: dict = {}


# Kind, pattern, and the characters that such a scalar can begin with.
_SCALARS = (
    ("null", r"~|null|", ["~", "n", "N", ""]),
    ("bool", r"true|false", list("tTfF")),
    ("int", r"[-+]?(0|[1-9]\d*)", list("-+0123456789")),
    ("float", r"[-+]?(\.\d+|\d+(\.\d*)?)(e[-+]?\d+)?|[-+]?\.inf|\.nan", list("-+.0123456789")),
)
for _kind, _pattern, _first in _SCALARS:
    _regex = re.compile(rf"^(?:{_pattern})$", re.IGNORECASE)
    _Yaml12Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _regex, _first)


def read_yaml(path: Path) -> Any:
    """Read a YAML 1.2 file; a mistake in it becomes an `InputError` with file and line."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Yaml12Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}") from error


def parse_scalar(text: str) -> Any:
    """Read one value as a recipe file would: `"0.5"` -> 0.5, `"true"` -> True, `"[tensorboard]"` -> a list."""
    try:
        return yaml.load(text, _Yaml12Loader)
    except yaml.YAMLError:
        return text


def check_known(names: Iterable[str], known: Iterable[str], source: str, what: str = "field") -> None:
    """Refuse names that do not exist.

    Args:
        names: The names in a file.
        known: All names there are.
        source: The file, for the message.
        what: What they name, for the message.

    Raises:
        InputError: With the name and the closest ones that exist.
    """
    known = sorted(known)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(known)}"
            raise InputError(f"{source}: unknown {what} `{name}`; {hint}")


def check_type(name: str, value: Any, expected: Any) -> None:
    """Refuse a value that is not of the annotated type; an int passes where a float is annotated."""
    if isinstance(value, int) and not isinstance(value, bool) and float in (expected, *get_args(expected)):
        return
    try:
        type_validator(name, value, expected)
    except TypeError as error:
        raise InputError(f"`{name}` must be {_describe(expected)}, not {value!r}") from error


def _describe(expected: Any) -> str:
    if expected is NoneType:
        return "null"
    if get_origin(expected) is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(expected))
    if get_args(expected) and get_origin(expected) not in (list, dict):
        return " or ".join(_describe(part) for part in get_args(expected))
    return expected.__name__ if isinstance(expected, type) and not get_args(expected) else str(expected)
