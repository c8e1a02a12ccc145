"""Where this package came from, so that errors and Spaces name a line of pip that works."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .errors import InputError

NAME = "hf-paraphrase"


def require(module: str, extra: str, user: str, otherwise: str = "", package: str | None = None) -> None:
    """Raise InputError with the install command if a module is missing.

    Args:
        module: The module to import.
        extra: The extra of this package that brings it.
        user: What needs it.
        otherwise: What to do without it.
        package: What people call it; None for the module's name.
    """
    if find_spec(module) is None:
        line = describe_installation(extra)
        raise InputError(f"{user} needs {package or module}; install it with: {line}{otherwise and f'; {otherwise}'}")


def describe_installation(extras: str) -> str:
    """The line that installs this package with extras, from where it came from.

    Args:
        extras: Their names, with commas between.
    """
    origin = _read_origin()
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install --editable '{_local_path(origin)}[{extras}]'"
    return f"pip install '{_require(origin, extras)}'" if origin else f"pip install '{NAME}[{extras}]'"


def find_public_requirement(extras: str) -> str:
    """What pip installs on another machine: this version from the index, or the address where the package came from.

    Of a clone, that is the address of its remote `origin`.

    Args:
        extras: Names of extras, with commas between.

    Raises:
        InputError: It came from a folder or file of this machine, and no remote of git is known.
    """
    origin = _read_origin()
    if not origin:
        return f"{NAME}[{extras}]=={version(NAME)}"
    if not origin["url"].startswith("file:"):
        return _require(origin, extras)
    folder = _local_path(origin)
    command = ["git", "-C", folder, "remote", "get-url", "origin"]
    try:
        remote = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        remote = ""
    if not remote.startswith("https:"):
        raise InputError(
            f"other machines cannot install hf_paraphrase from {folder}: publish it, install it from there with pip "
            f"install '{NAME} @ git+https://…'; or tell `space` with --package '{NAME}[{extras}] @ git+https://…'"
        )
    return f"{NAME}[{extras}] @ git+{remote}"


def _read_origin() -> dict[str, Any]:
    """What pip recorded of a direct installation (PEP 610); empty if the package came from an index."""
    try:
        recorded = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # run from its source
        return {"url": Path(__file__).parents[2].as_uri(), "dir_info": {"editable": True}}
    return json.loads(recorded) if recorded else {}


def _require(origin: dict[str, Any], extras: str) -> str:
    address = origin["url"]
    if source := origin.get("vcs_info"):
        address = f"{source['vcs']}+{address}@{source['commit_id']}"
    if folder := origin.get("subdirectory"):
        address += f"#subdirectory={folder}"
    return f"{NAME}[{extras}] @ {address}"


def _local_path(origin: dict[str, Any]) -> str:
    return unquote(urlsplit(origin["url"]).path)
