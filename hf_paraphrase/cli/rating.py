"""The commands `hf-paraphrase rating …`, by which people judge. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .terminal import echo

if TYPE_CHECKING:
    from ..rating.forms import SourceOutputs

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Forms by which people rate and compare systems, and their answers.")


@app.command()
def make(
    system: Annotated[
        list[str],
        typer.Option(metavar="NAME=FILE", help="A system's predictions-*.jsonl, as `evaluate` writes it; repeatable."),
    ],
    output_dir: Annotated[Path, typer.Option(help="Where the forms and the key go.")],
    num_sources: Annotated[int, typer.Option(min=1, help="Sources to draw.")] = 100,
    num_outputs: Annotated[int, typer.Option(min=1, help="Outputs of a system for a source, at most.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the draw and the order.")] = 0,
) -> None:
    """Write the forms by which people judge paraphrases, as in Kazemnejad et al. 2020, section 4.5, and their key.

    \b
    hf-paraphrase rating make --system FSET=runs/fset/evaluation/predictions-test-beam5-neighbors3.jsonl \\
        --system DiPS=runs/transformer/evaluation/predictions-test-dips5.jsonl --output-dir forms

    Send `ratings.html` and `preference.html` to the raters: each is one file that opens in a browser, without network,
    and hands its answers out as CSV. Keep `key.json`, which says who wrote what, for `rating read`.
    """
    from ..rating import AnswerKey, make_rating_forms

    systems = _read_systems(system)
    paths = make_rating_forms(systems, output_dir, num_sources=num_sources, num_outputs=num_outputs, seed=seed)
    for name, path in paths.items():
        echo(f"{name}: {path}")
    if equal := len(AnswerKey.load(paths["key"]).equal):
        echo(f"{equal} pairs of equal outputs are not asked about: they count as ties")


@app.command()
def read(
    key: Annotated[Path, typer.Argument(help="The key.json that was written with the forms.")],
    answers: Annotated[list[Path], typer.Argument(help="CSV files of the raters, of either form.")],
    output: Annotated[Path | None, typer.Option(help="JSON file of the results.")] = None,
) -> None:
    """Sum up what people answered: mean ratings, and how often each system was preferred, with Cohen's kappa.

    \b
    hf-paraphrase rating read forms/key.json answers/*.csv --output forms/results.json

    That is table 3 and figure 5 of Kazemnejad et al. 2020.
    """
    from ..files import write_text
    from ..rating import AnswerKey, format_rating_results, read_answers, summarise_answers

    answer_key = AnswerKey.load(key)
    results = summarise_answers(read_answers(answers, answer_key), answer_key)
    echo(format_rating_results(results))
    if output is not None:
        write_text(output, json.dumps(results, indent=2, ensure_ascii=False) + "\n")


def _read_systems(options: Iterable[str]) -> dict[str, list[SourceOutputs]]:
    """The outputs of each system by its name."""
    from ..rating import read_outputs

    systems = {}
    for option in options:
        name, _, path = option.partition("=")
        if not (name and path) or name in systems:
            raise InputError(f"--system takes NAME=FILE, each name once, got {option!r}")
        systems[name] = read_outputs(path)
    return systems
