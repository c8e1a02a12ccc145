"""Fields with types, help and bounds, for recipes and commands; and parsing of their values."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import yaml

from .bounds import check_bound
from .errors import InputError
from .files import describe_digits

# The bounds of a number: what its field says, whether a value keeps to it, and how errors put it.
RANGES = {
    "least": (operator.ge, "at least {}"),
    "above": (operator.gt, "greater than {}"),
    "most": (operator.le, "at most {}"),
    "below": (operator.lt, "below {}"),
}


def option(help: str, default: Any = MISSING, *, factory: Any = MISSING, **details: Any) -> Any:
    """A field of an `Options` class.

    Args:
        help: Help, one sentence.
        default: Its default; a field without one is required.
        factory: Makes the default, where that can be changed.
        details: `least`, `above`, `most` and `below` bound its number, or the numbers in its list; what the command
            line needs is in `cli/verbs.py`.
    """
    return field(default=default, default_factory=factory, metadata={"help": help, **details})


def default_of(one: Field) -> Any:
    """The default of a field; MISSING where it is required."""
    return one.default if one.default_factory is MISSING else one.default_factory()


class Options:
    """Base of dataclasses of options: each field is checked against its type and its bounds.

    Raises:
        InputError: A value is of the wrong type or outside its range; the message names the field.
    """

    # Every subclass is a dataclass.
    __dataclass_fields__: ClassVar[dict[str, Field]]

    def __post_init__(self):
        check_fields(self, fields(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str) -> Self:
        """Read the fields of a file.

        Args:
            values: By the names of the fields.
            source: Where they come from, for messages.

        Raises:
            InputError: For a field that is unknown or of a wrong value.
        """
        check_known(values, (one.name for one in fields(cls)), source)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None


def check_fields(options: Any, checked: Iterable[Field]) -> None:
    """Refuse values of a dataclass that do not fit the types and bounds of its fields; a path in words becomes one."""
    hints = get_type_hints(type(options))
    for one in checked:
        value = getattr(options, one.name)
        if isinstance(value, str) and Path in (hints[one.name], *get_args(hints[one.name])):
            value = Path(value)
            object.__setattr__(options, one.name, value)  # the class may be frozen
        check_type(one.name, value, hints[one.name])
        check_range(one.name, value, one.metadata)


def check_range(name: str, value: Any, bounds: Mapping[str, Any]) -> None:
    """Refuse a number, or a list with one, outside the bounds of its field."""
    asked = [(bounds[kind], *RANGES[kind]) for kind in RANGES if kind in bounds]
    for number in value if isinstance(value, list) else [value]:
        if number is not None and not all(keeps(number, bound) for bound, keeps, _ in asked):
            wanted = " and ".join(text.format(bound) for bound, _, text in asked)
            raise InputError(f"`{name}` must be {wanted}, not {number}")


class _Yaml12Loader(yaml.SafeLoader):
    """YAML 1.2 scalars: `1e-3` is a number and `no` a word, where PyYAML's 1.1 reads a string and `False`.

    It bounds nesting depth, and the number of values after aliases are expanded.
    """

    yaml_implicit_resolvers: dict = {}

    def __init__(self, stream: str):
        super().__init__(stream)
        self.depth = self.nodes = 0
        self.sizes: dict[str, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        """Compose a node, and count the values in it."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors:
            if event.anchor not in self.sizes:
                raise InputError(f"line {event.start_mark.line + 1}: the anchor `{event.anchor}` contains itself")
            self._count(self.sizes[event.anchor])
            return super().compose_node(parent, index)
        before = self.nodes
        self.depth += 1
        check_bound("YAML_DEPTH", self.depth, f"line {event.start_mark.line + 1}: the depth of the nesting")
        self._count(1)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if event.anchor is not None:
            self.sizes[event.anchor] = self.nodes - before
        return node

    def _count(self, size: int) -> None:
        self.nodes += size
        check_bound("YAML_NODES", self.nodes, "the number of values, aliases replaced by what they name,")


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
        return _parse(path.read_text(encoding="utf-8"))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}") from error


def parse_scalar(text: str) -> Any:
    """Read one value as a recipe file would: `"0.5"` -> 0.5, `"true"` -> True, `"[tensorboard]"` -> a list."""
    try:
        return _parse(text)
    except yaml.YAMLError:
        return text


def _parse(text: str) -> Any:
    """Parse YAML; InputError where it asks for more than the bounds allow, yaml.YAMLError where it is not valid."""
    try:
        return yaml.load(text, _Yaml12Loader)
    except InputError:
        raise
    except RecursionError as error:
        raise InputError("the values nest too deeply for Python") from error
    except ValueError as error:  # an integer of too many digits
        raise InputError(describe_digits(error)) from error


def check_known(names: Iterable[str], known: Iterable[str], source: str, what: str = "field") -> None:
    """Raise InputError for names that do not exist, with the closest that do.

    Args:
        names: The names in a file.
        known: All names there are.
        source: The file, for the message.
        what: Names them in the message.
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
    from huggingface_hub.dataclasses import type_validator  # takes a while to import, and `--help` checks nothing

    try:
        type_validator(name, value, expected)
    except TypeError as error:
        raise InputError(f"`{name}` must be {_describe(expected)}, not {value!r:.200}") from error


def _describe(expected: Any) -> str:
    if expected is NoneType:
        return "null"
    if get_origin(expected) is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(expected))
    if get_args(expected) and get_origin(expected) not in (list, dict):
        return " or ".join(_describe(part) for part in get_args(expected))
    return expected.__name__ if isinstance(expected, type) and not get_args(expected) else str(expected)
