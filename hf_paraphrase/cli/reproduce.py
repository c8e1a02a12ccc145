"""The command that makes tables of the papers again. Heavy imports are inside the command."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..common.fields import option
from ..errors import InputError
from ..papers import PAPERS
from .terminal import echo
from .verbs import Verb, verb

__all__ = ["Reproduce"]

TABLES = {table.name: table for paper in PAPERS for table in paper.tables}
# Beside this package, in a checkout.
CARDS = Path(__file__).parents[2] / "model_cards"


def _parse_seeds(label: str, seeds: str) -> list[int]:
    try:
        return [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(f"{label} takes numbers with commas between them, got {seeds!r}") from None


@verb("reproduce")
class Reproduce(Verb):
    """Reproduce a table of a paper and test its claims.

    \b
    hf-paraphrase reproduce prakash-mscoco --data-dir data/mscoco --output-dir runs/prakash-mscoco --jobs 2
    hf-paraphrase reproduce li-hotel-reviews --data-dir data/hotel --output-dir runs/li --minutes 20 --seeds 1,2

    It says whether the paper's claims hold. After an interruption the same command resumes, even days later; finished
    parts are reused. A line says when the training of each system begins and ends.
    """

    table: str = option(f"One of: {', '.join(TABLES)}.", positional=True)
    output_dir: Path = option("Where trainings, evaluations and the table go.")
    settings: str = option("small, for two CPU cores, or paper.", "small")
    data_dir: Path | None = option("Folder with the corpus's published files.  [default: downloaded]", None)
    minutes: float | None = option("Core-minutes per training, instead of the settings' own.", None, least=0)
    seeds: list[int] | None = option("Seeds of the trainings, such as 1,2,3.", None, read=_parse_seeds)
    jobs: int = option("Trainings that run at the same time, one core each.", 1, least=1)
    device: str | None = option("cpu or cuda, to train and to evaluate.  [default: a GPU where there is one]", None)
    cards: bool = option("Write the table into model_cards/ too.", False)

    def run(self) -> str:
        """Reproduce, write the table, and return it."""
        from ..reproduction.report import write_reproduction
        from ..reproduction.tables import reproduce

        if self.table not in TABLES:
            raise InputError(f"no table is called {self.table}; there are: {', '.join(TABLES)}")
        if self.cards and not CARDS.is_dir():
            raise InputError("--cards writes into the model_cards/ of a checkout, and this is an installed package")
        table = TABLES[self.table]
        report = partial(echo, err=True)
        measured = self.call(reproduce, table=table, seeds=self.seeds and tuple(self.seeds), report=report)
        command = self.command_line or repr(self)
        text = write_reproduction(table, measured, command, self.output_dir)
        if self.cards:
            write_reproduction(table, measured, command, CARDS / table.cards)
        return text.removesuffix("\n")
