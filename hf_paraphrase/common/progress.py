"""Whether anybody sees a progress bar."""

from __future__ import annotations

import sys


def is_watched() -> bool:
    """Whether this runs on a terminal or in a notebook, whose standard error is not a terminal."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()
