r"""Write the forms by which people judge paraphrases, as in Kazemnejad et al. 2020, section 4.5:

    python scripts/make_rating_forms.py --system FSET=runs/fset/evaluation/predictions-test-beam5-neighbors3.jsonl \
        --system DiPS=runs/transformer/evaluation/predictions-test-dips5.jsonl --output-dir forms

Send `ratings.html` and `preference.html` to the raters: each is one file that opens in a browser, without network, and
hands its answers out as CSV. Keep `key.json`, which says who wrote what, for scripts/read_rating_forms.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.errors import InputError
from hf_paraphrase.rating import AnswerKey, make_rating_forms, read_outputs


def main(
    system: Annotated[
        list[str],
        typer.Option(metavar="NAME=FILE", help="A system's predictions-*.jsonl, as `evaluate` writes it; repeatable."),
    ],
    output_dir: Annotated[Path, typer.Option(help="Where the forms and the key go.")],
    num_sources: Annotated[int, typer.Option(min=1, help="Sources to draw.")] = 100,
    num_outputs: Annotated[int, typer.Option(min=1, help="Outputs of a system for a source, at most.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the draw and the order.")] = 0,
) -> None:
    """Write both, and the key."""
    try:
        systems = read_systems(system)
        paths = make_rating_forms(systems, output_dir, num_sources=num_sources, num_outputs=num_outputs, seed=seed)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    for name, path in paths.items():
        print(f"{name}: {path}")
    if equal := len(AnswerKey.load(paths["key"]).equal):
        print(f"{equal} pairs of equal outputs are not asked about: they count as ties")


def read_systems(options: list[str]) -> dict[str, list]:
    """The outputs of each system by its name."""
    systems = {}
    for option in options:
        name, _, path = option.partition("=")
        if not (name and path) or name in systems:
            raise InputError(f"--system takes NAME=FILE, each name once, got {option!r}")
        systems[name] = read_outputs(path)
    return systems


if __name__ == "__main__":
    typer.run(main)
