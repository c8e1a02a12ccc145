from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that the user can fix: its message names the file, line, field or argument and says what to do."""
