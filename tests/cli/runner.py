"""Runs commands as `hf-paraphrase` does."""

from __future__ import annotations

import pytest
import typer

from hf_paraphrase.cli.app import app, main


def run(*args: object) -> int:
    """Run a command line, and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    return stop.value.code or 0


def find_commands() -> dict[str, typer.core.TyperCommand]:
    """Every command that is not a group, by its words."""

    def walk(command: typer.core.TyperCommand, words: list[str]):
        inner = getattr(command, "commands", {})
        for name, part in inner.items():
            yield from walk(part, [*words, name])
        if not inner:
            yield " ".join(words), command

    return dict(walk(typer.main.get_command(app), []))
