"""The commands that paraphrase a corpus, and distil a model with it. Heavy imports are inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..common.errors import InputError
from ..common.fields import option
from ..common.installation import require
from ..released import RELEASED
from .options import CandidateOptions, PassingOptions, WriterOptions, pairs_option, split_names
from .terminal import echo
from .train import parse_overrides
from .verbs import verb

if TYPE_CHECKING:
    from ..augmentation.run import Augmentation


class RowOptions(CandidateOptions):
    """Further arguments of a `Paraphraser`'s call."""

    max_new_tokens: int | None = option("Maximum length of a candidate, in tokens.", None, least=1)


class AugmentationOptions(WriterOptions, PassingOptions, RowOptions):
    """Texts, the model that paraphrases them, and where it runs."""

    input: str = option(
        "What to paraphrase: a .csv, .tsv, .jsonl or .parquet file, a folder of them, a corpus of "
        "`hf-paraphrase datasets list`, or owner/name of the Hub.",
        positional=True,
    )
    model: str = option("Checkpoint folder or Hub repository of the model that writes.", RELEASED)
    column: str = option("Its column with the text.")
    output: str = option("Folder, or where fsspec reaches, such as hf://datasets/you/yours.")
    n: int = option("Maximum number of paraphrases per row.", 3, least=1, flag="-n")
    keep_columns: list[str] | None = option(
        "Other columns to keep, comma-separated.  [default: all]", None, read=split_names
    )
    split: str | None = option("Of a corpus or the Hub.  [default: train]", None)
    tasks: int = option("Parts of the work, one Parquet file each; a killed part starts again.", 64, least=1)
    workers: int = option("Tasks that run at the same time, each with its own copy of the model.", 1, least=1)
    executor: str = option("Where the tasks run: local, slurm or ray.", "local")
    executor_option: dict[str, Any] = pairs_option(
        "Argument of datatrove's executor, such as partition=gpu or gpus_per_task=1; repeatable."
    )
    logging_dir: str | None = option(
        "Folder for logs and progress, shared by all machines.  [default: .augment in the output folder, or the "
        "cache where the output is elsewhere]",
        None,
    )
    paraphraser_option: dict[str, Any] = pairs_option(
        "Further argument of a Paraphraser's call, such as adequacy=embedding or num_beams=8; repeatable."
    )

    def make_augmentation(self) -> Augmentation:
        """The settings that determine the rows."""
        require("datatrove", "augmentation", "augment")
        from ..augmentation.run import Augmentation

        options = self.call_options(PassingOptions, RowOptions) | self.paraphraser_option
        return self.call(Augmentation, options=options)


@verb("augment")
class Augment(AugmentationOptions):
    """Paraphrase a corpus on one machine or many; resumable.

    \b
    hf-paraphrase augment questions.csv --column question -n 3 --output augmented
    hf-paraphrase augment questions.csv --model runs/first --column question -n 3 --output augmented \\
        --keep-columns label --workers 2 --min-adequacy 0.3
    hf-paraphrase augment questions.csv --model runs/first --column question --output augmented --executor slurm \\
        --workers 16 --executor-option partition=gpu --executor-option time=20:00:00 --executor-option gpus_per_task=1
    hf-paraphrase augment questions.csv --model runs/first --column question --output hf://datasets/you/augmented

    The output has Parquet files with a row for each paraphrase: the columns of the source that are kept, `source_id`,
    `paraphrase`, `rank`, `score`, `adequacy`, `fluency`, `novelty` and `error`, and a card with counts and settings.
    A source that failed, or whose candidates were all rejected, keeps a row with the reason. datasets.load_dataset
    reads the output.

    After any interruption the same command resumes, and the rows are those of an uninterrupted run. With
    slurm it submits jobs and returns; started again when they are done, it writes the card. Other settings need
    another output.
    """

    push_to_hub: bool = option("Push the output folder to the Hub.", False)
    hub_dataset_id: str | None = option("Repository.  [default: name of the output]", None)
    hub_private_repo: bool = option("Create the repository as private.", False)

    def run(self) -> Counter[str] | None:
        """Run or resume, and return the counts of the rows; None where jobs were submitted."""
        asked = self.make_augmentation()
        if self.push_to_hub:
            from ..hub.push import check_access

            if "://" in self.output:
                raise InputError(
                    "--push-to-hub shares a folder of this machine; what goes to hf:// is on the Hub already"
                )
            check_access(self.repo_id)
        from ..augmentation.run import run_augmentation

        try:
            return self.call(run_augmentation, asked=asked, executor_options=self.executor_option)
        except KeyboardInterrupt:
            echo("interrupted; the same command does what is missing", err=True)
            raise typer.Exit(130) from None

    def show(self, counts: Counter[str] | None) -> None:
        if counts is None:
            echo("jobs are submitted; the same command, when they are done, does what is missing or writes the card")
            return
        echo(
            f"{counts['rows']:,} rows: {counts['paraphrases']:,} paraphrases; of {counts['without']:,} rows no "
            f"candidate passed, {counts['failed']:,} rows failed (`error` says why)"
        )
        if counts["cut"]:
            echo(f"{counts['cut']:,} rows are longer than what the model reads (`max_source_length`)", err=True)
        if self.push_to_hub:
            from ..hub.push import push_folder

            echo(push_folder(self.output, self.repo_id, "dataset", private=self.hub_private_repo))

    @property
    def repo_id(self) -> str:
        """Where the rows are pushed to."""
        return self.hub_dataset_id or Path(self.output).resolve().name


@verb("distill")
class Distill(AugmentationOptions):
    """Distil a language model into a small fast one.

    \b
    hf-paraphrase distill sentences/ --column text --teacher HuggingFaceTB/SmolLM2-135M-Instruct \\
        --recipe transformer-open --output-dir runs/student --data-dir data/open
    hf-paraphrase distill texts.csv --column text --teacher llama3.2 --backend http://localhost:11434/v1 \\
        --recipe residual-lstm-synthetic --no-baseline --output-dir runs/student

    The teacher paraphrases every text, as `augment` does; what passes becomes a corpus with a card, on which the
    recipe's model is trained. The table puts the teacher, the student and the same recipe without distillation side
    by side. After any interruption the same command resumes. Fields of the recipe are overridden by --field value.
    """

    context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    model: str = option("Checkpoint folder, .gguf file or Hub repository that writes.", flag="--teacher")
    output: str = option("Folder for the candidates, the corpus, the student and the table.", flag="--output-dir")
    recipe: str = option("The student's: one of `hf-paraphrase recipes`, or a folder.")
    held_out: float = option("Share of the texts for validation, and as much for test.", 0.05, above=0, below=0.5)
    encoder: str | None = option(
        "Sentence encoder whose cosine is the adequacy of the table.  [default: the round trip by the model of the "
        "package]",
        None,
    )
    most_tested: int = option("Maximum number of texts in the table.", 1000, least=1)
    likeliest: int | None = option(
        "Train on only the N likeliest paraphrases of each text, by the teacher.  [default: all that pass]",
        None,
        least=1,
    )
    teacher_licence: str | None = option("Its licence, and what it says of outputs.  [default: its card's]", None)
    baseline: bool = option("Also train the recipe without distillation.", True, flag="--baseline/--no-baseline")
    data_dir: Path | None = option("Folder with the files of the recipe's own corpus.", None)
    overrides: dict[str, Any] = option("Fields of the recipe.", factory=dict, rest=True, read=parse_overrides)

    def run(self) -> list[dict[str, Any]] | None:
        """Run or resume, and return the table; None where jobs were submitted."""
        texts = self.make_augmentation()
        if "://" in self.output:
            raise InputError("--output-dir is a folder of this machine")
        from ..distillation import Distillation, run_distillation
        from ..training.recipe import load_recipe

        recipe = load_recipe(self.recipe).override(self.overrides)
        asked = self.call(Distillation, texts=texts, recipe=recipe)
        where = {name: getattr(self, name) for name in ("workers", "executor", "logging_dir")}
        where["executor_options"] = self.executor_option
        return self.call(run_distillation, asked=asked, output_dir=self.output, **where)

    def show(self, result: Sequence[dict[str, Any]] | None) -> None:
        if result is None:
            echo("jobs are submitted; the same command, when they are done, goes on")
            return
        from ..distillation import TABLE_FILE

        echo((Path(self.output) / TABLE_FILE).read_text(encoding="utf-8"))
