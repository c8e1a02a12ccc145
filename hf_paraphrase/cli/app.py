"""The command `hf-paraphrase`: the order of its help, and the one place where errors are said."""

from __future__ import annotations

import atexit
import builtins
import gc
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from .. import __version__
from ..checkpoints.trust import refuse_to_ask
from ..common.errors import InputError, TrainingInterrupted
from . import augment, compare, datasets, evaluate, explain, hub, paraphrase, serve, train  # noqa: F401
from .terminal import echo, print_logs_safely
from .verbs import make_app

# What knows no `InputError` and refuses input by a ValueError: code that travels with checkpoints, and `generate()`.
FOREIGN_CHECKS = ("hf_paraphrase.models.", "transformers.generation.")
# Of typer's exceptions for a command line that cannot be read; it exports the subclass alone.
UsageError = typer.BadParameter.__base__

# The commands in the order in which people learn them.
SECTIONS = {
    "Use a model": ("paraphrase", "paraphrase-document", "augment", "demo", "serve"),
    "Prepare data": ("datasets", "mine"),
    "Train": ("recipes", "train", "distill", "retriever"),
    "Judge": ("evaluate", "score", "compare", "explain", "rating", "reproduce"),
    "Share": ("info", "push", "space", "env"),
}
GROUPS = {
    "datasets": "List, describe and preview the built-in corpora.",
    "retriever": "Train the retriever of models that edit pairs.",
    "explain": "Draw edits, attention, learning curves and embeddings.",
    "explain match": "Show what activates the units of a coupled LSTM.",
    "rating": "Make rating forms for people, and read their answers.",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"hf-paraphrase {__version__}")
        raise typer.Exit


def _app(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Paraphrase English text with scores; train, judge and share models.

    \b
    hf-paraphrase paraphrase "The meeting was moved to Thursday because the room was taken." -n 3
    hf-paraphrase paraphrase-document notes.md --output notes.new.md
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/first
    hf-paraphrase evaluate runs/first --output-dir runs/first/evaluation
    hf-paraphrase push runs/first --repo-id you/first
    """


app = make_app(
    SECTIONS,
    GROUPS,
    # Every option may be written with underscores, as in transformers, or with dashes.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 119,
        "token_normalize_func": lambda name: name.replace("_", "-"),
    },
    callback=_app,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main(args: list[str] | None = None) -> None:
    """Run the command line, that of the process or `args` without the program's name, and exit.

    Exits with 2 and one line on standard error for mistakes that the user can fix, and with 128 + the signal's
    number where training was interrupted.
    """
    print_logs_safely()
    # Saves up to two CPU seconds: imports make a million objects that stay, and each collection visits all of them.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    try:
        with _no_questions():
            sys.exit(app(args, prog_name="hf-paraphrase", standalone_mode=False) or 0)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(error.exit_code)
        _fail(error.format_message())
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed it; keep Python from flushing the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (InputError, OSError) as error:
        _fail(str(error))
    except ValueError as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if not frame.f_globals["__name__"].startswith(FOREIGN_CHECKS):
            raise
        _fail(str(error))
    except TrainingInterrupted as interruption:
        echo(str(interruption), err=True)
        sys.exit(interruption.exit_code)


@contextmanager
def _no_questions() -> Iterator[None]:
    """Keep libraries from reading standard input: only commands read it."""
    ask, builtins.input = builtins.input, refuse_to_ask
    try:
        yield
    finally:
        builtins.input = ask


def _fail(message: str) -> None:
    """Report an error in one line, whichever library raised it."""
    echo(f"error: {' '.join(line.strip() for line in message.splitlines())}", err=True)
    sys.exit(2)
