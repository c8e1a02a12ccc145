"""Reading Google-style docstrings, from which cards are written."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import Any

# The headings that end the description; what follows one is indented, or goes on in its line.
_SECTION = re.compile(r"^(Args|Returns|Raises|Examples|Limits|Source):(?:\n| )", re.MULTILINE)
_ARGUMENT = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """A docstring: its first paragraph, on one line; those before the first section; the sections by heading."""

    summary: str
    details: str
    sections: dict[str, str]

    @property
    def arguments(self) -> dict[str, str]:
        """The description of each argument, on one line."""
        described = _ARGUMENT.findall(self.sections.get("Args", ""))
        return {name: " ".join(words.split()) for name, words in described}


def read_docstring(documented: Any) -> Docstring:
    """Read the docstring of a function or class."""
    description, *parts = _SECTION.split(inspect.getdoc(documented) or "")
    summary, _, details = description.partition("\n\n")
    texts = (textwrap.dedent(text).strip() for text in parts[1::2])
    return Docstring(" ".join(summary.split()), details.strip(), dict(zip(parts[::2], texts, strict=True)))
