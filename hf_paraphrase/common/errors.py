from __future__ import annotations


class InputError(ValueError):
    """Input that the user can fix: its message names the file, line, field or argument and says what to do."""


class TrainingInterrupted(Exception):
    """A signal stopped the training, which was saved first; the message says where, and how to resume."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = 128 + number
