"""What commands say: no file that they read sends its own escape sequences to the terminal."""

from __future__ import annotations

import logging
import re
import sys
import warnings

import typer

__all__ = ["echo", "make_printable", "print_logs_safely"]

# All control characters but tabs and line ends; `score` prints the better of two in bold.
CONTROLS = re.compile(r"(?!\x1b\[[01]m)[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_format_raw_warning = warnings.formatwarning


def make_printable(text: str) -> str:
    """Write the control characters of a text as JSON does, `\\u001b` for an escape, but for tabs and line ends."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str = "", *, err: bool = False, nl: bool = True, is_data: bool = False) -> None:
    """Print a text without control characters.

    Args:
        text: The text.
        err: Print it to standard error.
        nl: End the line.
        is_data: Output is changed only in terminals: piped data stay as they are.
    """
    is_raw = is_data and not sys.stdout.isatty()
    # `color=True`: typer would drop escape sequences where standard output is not a terminal.
    typer.echo(text if is_raw else make_printable(text), err=err, nl=nl, color=True if is_raw else None)


class PrintableRecord(logging.LogRecord):
    """A line of a log without control characters. The server's have colours, and quote no file."""

    def getMessage(self) -> str:  # noqa: N802 (the name that logging gives it)
        """The message, its arguments put in."""
        message = super().getMessage()
        return message if self.name.startswith("uvicorn") else make_printable(message)


def print_logs_safely() -> None:
    """Have all logs and warnings of this process print no control characters: they quote files, too."""
    logging.setLogRecordFactory(PrintableRecord)
    warnings.formatwarning = _format_warning


def _format_warning(*args, **kwargs) -> str:
    return make_printable(_format_raw_warning(*args, **kwargs))
