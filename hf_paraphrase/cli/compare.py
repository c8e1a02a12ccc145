"""The commands that make tables of several models. What is heavy is imported inside them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import write_text
from ..common.installation import require
from ..papers.table import list_tables, load_table
from .corpus import Corpus, Files, SplitOptions, files_option, find_training_config
from .options import ChoiceOptions, IntervalOptions, MetricOptions, metrics_option, pairs_option
from .terminal import echo
from .verbs import Verb, verb

if TYPE_CHECKING:
    from datasets import Dataset

    from ..evaluation.comparison import System
    from ..evaluation.results import Results

OPEN_TEXT = "open-text"  # no paper's
EQUAL_PASSES = "-equal-passes"  # ends the name of a table whose systems read the data equally often
TABLES = (*list_tables(), OPEN_TEXT)
# Beside this package, in a checkout.
CARDS = Path(__file__).parents[2] / "model_cards"


class ComparisonOptions(MetricOptions, ChoiceOptions):
    """What only paraphrasers are compared by."""

    metrics: list[str] = metrics_option("rouge", "bleu", "meteor", "pinc")
    num_beams: int = option("Beam width.", 5, least=1)
    num_candidates: int = option("Candidates per text.", 5, least=1)
    against: str | None = option("Name of the system to test the others against; by default the first.", None)
    n_trials: int = option("Shuffles for the p-values.", 10_000, least=2)
    encoder: str | None = option("Judge of adequacy, a model of sentence-transformers: compares ways to choose.", None)


@verb("compare")
class Compare(ComparisonOptions, IntervalOptions, SplitOptions):
    """Compare models on one split, with significance tests.

    \b
    hf-paraphrase compare FSET=runs/fset-quora-small "residual LSTM=runs/residual-lstm-quora-small" \\
        --dataset quora --dataset-name clean --data-dir data/quora --output-dir runs/comparison
    hf-paraphrase compare greedy=runs/first,num_beams=1 wide=runs/first,num_beams=10 --num-candidates 1 \\
        --dataset synthetic_questions --metrics bleu,pinc --output-dir runs/widths
    hf-paraphrase compare words=runs/residual-lstm-quora-small pieces=runs/residual-lstm-quora-bpe \\
        --dataset quora --dataset-name clean --data-dir data/quora --encoder sentence-transformers/all-MiniLM-L6-v2 \\
        --set min_novelty=0.2 --output-dir runs/choices
    hf-paraphrase compare standard=runs/standard hierarchical=runs/hierarchical --output-dir runs/reconstruction

    A system is NAME=PATH, optionally with its own options, which override the common ones: arguments of
    `evaluate_paraphraser` or `generate`, such as `NAME=PATH,num_beams=10,select=jaccard`. All systems are of one kind.
    The table says how each paraphraser chose among its outputs: by default it keeps the likeliest; Kazemnejad et al.
    2020 keep the one most like the source (`--select jaccard`). Each system has a folder, and evaluations found there
    are reused: an interrupted comparison resumes, and systems can be added. `comparison.md`, `.csv`, `.json` and,
    where matplotlib is installed and BLEU and PINC were asked for, `.png` hold what came out, as Table 2 of Kazemnejad
    et al. 2020 does.

    With --encoder, the judge of adequacy, the table shows what choosing among candidates is worth: first beam,
    Paraphraser and Parrot's rules, scored on the rows for which every way has a paraphrase, in `choices.*`.
    Autoencoders are drawn by the length of their documents.
    """

    sections = {"paraphraser": ComparisonOptions}

    systems: list[str] = option("What to compare.", positional=True, metavar="NAME=PATH[,OPTION=VALUE…]")
    output_dir: Path = option("Where the evaluations and the table go.")
    batch_size: int | None = option("Batch size, in rows.", None, least=1)
    override: dict[str, Any] = pairs_option(
        "An option for all systems; with --encoder an argument of Paraphraser; repeatable.",
        flag="--set",
        metavar="OPTION=VALUE",
    )
    trust_remote_code: bool = option("Run the code in the checkpoints, and read pickled weights.", False)

    def run(self) -> Results | list[Results]:
        """Compare, write the files, and return what the JSON file holds; of autoencoders, the results of each."""
        from ..evaluation.comparison import parse_system
        from ..evaluation.kinds import find_kind

        systems = [parse_system(text) for text in self.systems]
        kinds = {
            find_kind(one.path, find_training_config(one.path), self.trust_remote_code): one.name for one in systems
        }
        kind, *others = kinds
        compare: dict[str, Callable[..., Results | list[Results]]] = {
            "paraphraser": self._compare_paraphrasers if self.encoder is None else self._compare_choices,
            "autoencoder": self._compare_autoencoders,
        }
        if others or kind not in compare:
            found = ", ".join(f"{name}: {kind}" for kind, name in kinds.items())
            raise InputError(f"compare takes paraphrasers alone, or autoencoders; {found}")
        self.refuse_options_of_others(kind, systems[0].name)
        return compare[kind](systems)

    def show(self, results: Results | list[Results]) -> None:
        from ..evaluation.kinds import FORMATS

        if isinstance(results, list):
            echo("\n".join(FORMATS[one.kind](one) for one in results))
        else:
            echo(self._format(results), nl=False)

    def _format(self, results: Results) -> str:
        from ..evaluation.choices import format_choices
        from ..evaluation.comparison import format_comparison_as_markdown

        make = format_choices if results.kind == "choices" else format_comparison_as_markdown
        return make(results, self.command_line or repr(self))

    def _read(self, systems: list[System]) -> tuple[Dataset, Corpus]:
        corpus = self.find_corpus_of(systems[0].path)
        return self.take(corpus.load(self.split)), corpus

    def _compare_paraphrasers(self, systems: list[System]) -> Results:
        from ..evaluation.comparison import (
            compare_paraphrasers,
            format_comparison_as_csv,
            plot_quality_against_diversity,
        )

        metric_options = self.metric_options()
        rows, corpus = self._read(systems)
        common = {"num_beams": self.num_beams, "batch_size": self.batch_size or 64, **self.given(ChoiceOptions)}
        results = self.call(
            compare_paraphrasers,
            systems=systems,
            dataset=rows,
            options={**common, **self.override},
            metric_options=metric_options,
            data=self.describe(corpus),
        )
        results.save(self.output_dir / "comparison.json")
        write_text(self.output_dir / "comparison.csv", format_comparison_as_csv(results), newline="")
        write_text(self.output_dir / "comparison.md", self._format(results))
        if importlib.util.find_spec("matplotlib") and all(map(results.entries[0].find, ("bleu_4", "pinc"))):
            plot_quality_against_diversity(results, self.output_dir / "comparison.png")
        return results

    def _compare_choices(self, systems: list[System]) -> Results:
        from ..evaluation.choices import compare_choices

        rows, corpus = self._read(systems)
        models = {one.name: one.path for one in systems}
        described = self.describe(corpus)
        results = self.call(compare_choices, models=models, dataset=rows, data=described, options=self.override)
        results.save(self.output_dir / "choices.json")
        write_text(self.output_dir / "choices.md", self._format(results))
        return results

    def _compare_autoencoders(self, systems: list[System]) -> list[Results]:
        require("matplotlib", "plots", "comparing autoencoders")
        from ..evaluation.documents import evaluate_autoencoder, plot_reconstruction

        results = {}
        for one in systems:
            rows, corpus = self._read([one])
            options = {"num_beams": 1} | self.override | one.options  # the paper's is greedy
            options |= {"output_dir": self.output_dir / one.name, "data": self.describe(corpus)}
            found = self.call(evaluate_autoencoder, model=one.path, tokenizer=None, dataset=rows, **options)
            results[one.name] = found
        plot_reconstruction(results, self.output_dir / "reconstruction.png")
        return list(results.values())


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
    num_train_epochs: float | None = option(
        "Passes over the data of each training, instead of equal core-minutes.", None, above=0
    )


class OpenTextOptions(Verb):
    """What only the table of free text takes."""

    data_files: Files = files_option(
        "Groups of sentences with one meaning, a kind of text each; none is trained on test=FILE; repeatable."
    )
    systems: list[str] = option("Train only this system; repeatable.  [default: all]", factory=list)
    language_model: str | None = option("Causal language model to measure too, such as a .gguf file.", None)
    round_trip: list[str] = option("Translator there, then the one back: give it twice.", factory=list)
    max_tokens_per_batch: int = option("Maximum tokens in a batch; a GPU is faster with more.", 2500, least=1)
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

    It says whether the paper's claims hold, judged at equal core-minutes or, with --num-train-epochs, at equal passes
    over the data. The latter is another table with trainings of its own, so give it another --output-dir; the names of
    its files end in `-equal-passes`. After an interruption the same command resumes, even days later; finished
    parts are reused. A line says when the training of each system begins and ends.

    `open-text` is no paper's: it trains the systems of this package on your own groups of sentences, and measures them
    beside copies, the released model and, where you name them, a language model and a round trip by translators.
    """

    sections = {"table of a paper": PaperOptions, "table of free text": OpenTextOptions}

    table: str = option(f"One of: {', '.join(TABLES)}.", positional=True)
    output_dir: Path = option("Where trainings, evaluations and the table go.")
    minutes: float | None = option("Core-minutes per training, instead of the settings' own.", None, least=0)
    encoder: str | None = option("Sentence encoder for the cosine of text and output.  [default: no cosine]", None)
    jobs: int = option("Trainings that run at the same time, one core each.", 1, least=1)
    device: str | None = option("cpu or cuda, to train and to evaluate.  [default: a GPU where there is one]", None)
    cards: bool = option("Write the table into model_cards/ too.", False)

    def run(self) -> str:
        """Reproduce, write the table, and return it."""
        if self.table not in TABLES:
            raise InputError(f"no table is called {self.table}; there are: {', '.join(TABLES)}")
        if self.cards and not CARDS.is_dir():
            raise InputError("--cards writes into the model_cards/ of a checkout, and this is an installed package")
        kind = "table of free text" if self.table == OPEN_TEXT else "table of a paper"
        self.refuse_options_of_others(kind, self.table)
        command, report = self.command_line or repr(self), partial(echo, err=True)
        return (self._compare if self.table == OPEN_TEXT else self._reproduce)(command, report).removesuffix("\n")

    def _reproduce(self, command: str, report: Callable[[str], None]) -> str:
        from ..reproduction.report import write_reproduction
        from ..reproduction.tables import reproduce

        table = load_table(self.table)
        if self.num_train_epochs is not None:
            table = replace(table, name=f"{table.name}{EQUAL_PASSES}", title=f"{table.title}, at equal passes")
        measured = self.call(reproduce, table=table, seeds=self.seeds and tuple(self.seeds), report=report)
        text = write_reproduction(table, measured, command, self.output_dir)
        if self.cards:
            write_reproduction(table, measured, command, CARDS / table.cards)
        return text

    def _compare(self, command: str, report: Callable[[str], None]) -> str:
        from ..reproduction.open_text import compare_on_open_text, write_open_text

        if self.data_files is None:
            raise InputError("--data-files is missing: name files of groups, tab separated, a group a line")
        results = self.call(compare_on_open_text, report=report)
        text = write_open_text(results, command, self.output_dir, self.output_dir)
        if self.cards:
            write_open_text(results, command, self.output_dir, CARDS / OPEN_TEXT)
        return text
