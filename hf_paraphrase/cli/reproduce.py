"""The command that makes tables of the papers again. What is heavy is imported inside the command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..papers import PAPERS
from .corpus import DataDir
from .terminal import echo

__all__ = ["reproduce"]

TABLES = {table.name: table for paper in PAPERS for table in paper.tables}
# Beside this package, in a checkout.
CARDS = Path(__file__).parents[2] / "model_cards"


def reproduce(
    table: Annotated[str, typer.Argument(help=f"One of: {', '.join(TABLES)}.")],
    output_dir: Annotated[Path, typer.Option(help="Where trainings, evaluations and the table go.")],
    settings: Annotated[str, typer.Option(help="small, for two CPU cores, or paper.")] = "small",
    data_dir: DataDir = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Core-minutes of each training, in place of those of the settings.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Of the trainings, for instance 1,2,3.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, a core each.")] = 1,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda, to train and to evaluate.  [default: a GPU where there is one]")
    ] = None,
    cards: Annotated[bool, typer.Option("--cards", help="Write the table into model_cards/ too.")] = False,
) -> None:
    """Train what a table of a paper compares, evaluate it, and say whether the paper's claims hold.

    \b
    hf-paraphrase reproduce prakash-mscoco --data-dir data/mscoco --output-dir runs/prakash-mscoco --jobs 2
    hf-paraphrase reproduce li-hotel-reviews --data-dir data/hotel --output-dir runs/li --minutes 20 --seeds 1,2

    What was interrupted goes on with the same command, also after days, and what is there already is not made again.
    """
    from ..reproduction.report import write_reproduction
    from ..reproduction.tables import reproduce as make_again

    if table not in TABLES:
        raise InputError(f"no table is called {table}; there are: {', '.join(TABLES)}")
    if cards and not CARDS.is_dir():
        raise InputError("--cards writes into the model_cards/ of a checkout, and this is an installed package")
    chosen = TABLES[table]
    measured = make_again(
        chosen,
        settings,
        output_dir,
        data_dir=data_dir,
        minutes=minutes,
        seeds=_parse_seeds(seeds),
        jobs=jobs,
        device=device,
    )
    command = shlex.join(["hf-paraphrase", *sys.argv[1:]])
    text = write_reproduction(chosen, measured, command, output_dir)
    if cards:
        write_reproduction(chosen, measured, command, CARDS / chosen.cards)
    echo(text, nl=False)


def _parse_seeds(seeds: str | None) -> tuple[int, ...] | None:
    if seeds is None:
        return None
    try:
        return tuple(int(seed) for seed in seeds.split(","))
    except ValueError:
        raise InputError(f"--seeds takes numbers with commas between them, got {seeds!r}") from None
