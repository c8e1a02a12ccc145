"""The command that makes tables of the papers again. Heavy imports are inside the command."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..common.fields import option
from ..errors import InputError
from ..papers import PAPERS
from .corpus import Files, files_option
from .terminal import echo
from .verbs import Verb, verb

__all__ = ["Reproduce"]

TABLES = {table.name: table for paper in PAPERS for table in paper.tables}
OPEN_TEXT = "open-text"  # no paper's
# Beside this package, in a checkout.
CARDS = Path(__file__).parents[2] / "model_cards"


def _parse_seeds(label: str, seeds: str) -> list[int]:
    try:
        return [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(f"{label} takes numbers with commas between them, got {seeds!r}") from None


class PaperOptions(Verb):
    """What only the table of a paper takes."""

    settings: str = option("small, for two CPU cores, or paper.", "small")
    data_dir: Path | None = option("Folder with the corpus's published files.  [default: downloaded]", None)
    seeds: list[int] | None = option("Seeds of the trainings, such as 1,2,3.", None, read=_parse_seeds)


class OpenTextOptions(Verb):
    """What only the table of free text takes."""

    data_files: Files = files_option(
        "Groups of sentences with one meaning, a kind of text each; none is trained on test=FILE; repeatable."
    )
    systems: list[str] = option("Train only this system; repeatable.  [default: all]", factory=list)
    language_model: str | None = option("Causal language model to measure too, such as a .gguf file.", None)
    round_trip: list[str] = option("Translator there, then the one back: give it twice.", factory=list)
    max_samples: int = option("Test texts of each kind.", 150, least=1)
    language_model_samples: int = option("How many of them the language model answers.", 20, least=1)


@verb("reproduce")
class Reproduce(OpenTextOptions, PaperOptions):
    """Reproduce a table of a paper and test its claims.

    \b
    hf-paraphrase reproduce prakash-mscoco --data-dir data/mscoco --output-dir runs/prakash-mscoco --jobs 2
    hf-paraphrase reproduce li-hotel-reviews --data-dir data/hotel --output-dir runs/li --minutes 20 --seeds 1,2
    hf-paraphrase reproduce open-text --data-files train=news.tsv --data-files train=talk.tsv \\
        --data-files test=questions.tsv --output-dir runs/open-text --minutes 60

    It says whether the paper's claims hold. After an interruption the same command resumes, even days later; finished
    parts are reused. A line says when the training of each system begins and ends.

    `open-text` is no paper's: it trains the systems of this package on your own groups of sentences, and measures them
    beside copies, the released model and, where you name them, a language model and a round trip by translators.
    """

    sections = {"table of a paper": PaperOptions, "table of free text": OpenTextOptions}

    table: str = option(f"One of: {', '.join([*TABLES, OPEN_TEXT])}.", positional=True)
    output_dir: Path = option("Where trainings, evaluations and the table go.")
    minutes: float | None = option("Core-minutes per training, instead of the settings' own.", None, least=0)
    encoder: str | None = option("Sentence encoder for the cosine of text and output.  [default: no cosine]", None)
    jobs: int = option("Trainings that run at the same time, one core each.", 1, least=1)
    device: str | None = option("cpu or cuda, to train and to evaluate.  [default: a GPU where there is one]", None)
    cards: bool = option("Write the table into model_cards/ too.", False)

    def run(self) -> str:
        """Reproduce, write the table, and return it."""
        if self.table not in (*TABLES, OPEN_TEXT):
            raise InputError(f"no table is called {self.table}; there are: {', '.join([*TABLES, OPEN_TEXT])}")
        if self.cards and not CARDS.is_dir():
            raise InputError("--cards writes into the model_cards/ of a checkout, and this is an installed package")
        kind = "table of free text" if self.table == OPEN_TEXT else "table of a paper"
        self.refuse_options_of_others(kind, self.table)
        command, report = self.command_line or repr(self), partial(echo, err=True)
        return (self._compare if self.table == OPEN_TEXT else self._reproduce)(command, report).removesuffix("\n")

    def _reproduce(self, command: str, report: Callable[[str], None]) -> str:
        from ..reproduction.report import write_reproduction
        from ..reproduction.tables import reproduce

        table = TABLES[self.table]
        measured = self.call(reproduce, table=table, seeds=self.seeds and tuple(self.seeds), report=report)
        text = write_reproduction(table, measured, command, self.output_dir)
        if self.cards:
            write_reproduction(table, measured, command, CARDS / table.cards)
        return text

    def _compare(self, command: str, report: Callable[[str], None]) -> str:
        from ..reproduction.open_text import compare_on_open_text
        from ..reproduction.open_text_report import write_open_text

        if self.data_files is None:
            raise InputError("--data-files is missing: name files of groups, tab separated, a group a line")
        results = self.call(compare_on_open_text, report=report)
        text = write_open_text(results, command, self.output_dir, self.output_dir)
        if self.cards:
            write_open_text(results, command, self.output_dir, CARDS / OPEN_TEXT)
        return text
