"""Prints every requirement of pyproject.toml at its lowest version; arguments, as torch==2.13.0, take their places."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

LOWEST = re.compile(r"(?P<name>[\w-]+)(?:\[[\w,-]+\])?>=(?P<version>[\w.]+)")


def read_lowest(requirements: list[str]) -> dict[str, str]:
    """The lowest version of each requirement; extras of the package itself have none."""
    others = [one for one in requirements if not one.startswith("hf-paraphrase[")]
    found = [LOWEST.fullmatch(one) for one in others]
    unbounded = [one for one, match in zip(others, found, strict=True) if match is None]
    if unbounded:
        sys.exit(f"pyproject.toml: no lowest version of {', '.join(unbounded)}")
    bounds = {(match["name"], match["version"]) for match in found}
    twice = sorted(name for name, count in Counter(name for name, _ in bounds).items() if count > 1)
    if twice:
        sys.exit(f"pyproject.toml: two lowest versions of {', '.join(twice)}")
    return dict(bounds)


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"].values()
    lowest = read_lowest([*project["dependencies"], *(one for group in groups for one in group)])
    lowest |= dict(one.split("==") for one in sys.argv[1:])
    print(*(f"{name}=={version}" for name, version in sorted(lowest.items())), sep="\n")
