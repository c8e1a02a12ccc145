from __future__ import annotations

from importlib.util import find_spec

from ..errors import InputError

__all__ = ["require"]


def require(module: str, package: str, metric: str) -> None:
    """Raise an InputError that says how to install what a metric needs, unless it is there.

    Args:
        module: Name of the module to import.
        package: What it is called by pip.
        metric: Who needs it.
    """
    if find_spec(module) is None:
        raise InputError(
            f"{metric} needs {package}; install it with: pip install {package}, or all that metrics need with: "
            "pip install 'hf-paraphrase[metrics]'"
        )
