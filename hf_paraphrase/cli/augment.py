"""The command `hf-paraphrase augment`. Heavy imports are inside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..common.fields import option
from ..errors import InputError
from ..installation import require
from .options import (
    DEFAULT_MODEL,
    PassingOptions,
    WriterOptions,
    max_source_length_option,
    parse_pairs,
    split_names,
)
from .terminal import echo
from .verbs import verb

if TYPE_CHECKING:
    from ..augmentation.run import Augmentation

__all__ = ["Augment", "AugmentationOptions"]

# Fields that are arguments of a `Paraphraser`'s call.
OF_A_PARAPHRASER = (
    "min_adequacy",
    "min_fluency",
    "min_novelty",
    "diversity",
    "keep",
    "decoding",
    "num_candidates",
    "max_new_tokens",
    "seed",
    "batch_size",
    "max_source_length",
    "strength",
)


@dataclass(kw_only=True)
class AugmentationOptions(WriterOptions, PassingOptions):
    """Texts, the model that paraphrases them, and where it runs."""

    input: str = option(
        "What to paraphrase: a .csv, .tsv, .jsonl or .parquet file, a folder of them, a corpus of "
        "`hf-paraphrase datasets list`, or owner/name of the Hub.",
        positional=True,
    )
    model: str = option("Checkpoint folder or Hub repository of the model that writes.", DEFAULT_MODEL)
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
    executor_option: dict[str, Any] = option(
        "Argument of datatrove's executor, such as partition=gpu or gpus_per_task=1; repeatable.",
        factory=dict,
        metavar="KEY=VALUE",
        read=parse_pairs,
        many=True,
    )
    logging_dir: str | None = option(
        "Where what is done is noted, within reach of all machines.  [default: .augment in the output folder, or the "
        "cache where the output is elsewhere]",
        None,
    )
    decoding: str | None = option("Decoding method: beam, diverse_beam, dips, sample or noise.", None)
    num_candidates: int | None = option("Candidates per text.", None, least=1)
    max_new_tokens: int | None = option("Maximum length of a candidate, in tokens.", None, least=1)
    seed: int | None = option("Random seed; rows are independent of each other.", None)
    batch_size: int = option("Batch size, in rows.", 16, least=1)
    max_source_length: int | None = max_source_length_option()
    paraphraser_option: dict[str, Any] = option(
        "Further argument of a Paraphraser's call, such as adequacy=embedding or num_beams=8; repeatable.",
        factory=dict,
        metavar="KEY=VALUE",
        read=parse_pairs,
        many=True,
    )

    def check_installed(self) -> None:
        """Raise InputError where datatrove is missing."""
        require("datatrove", "augmentation", "augment")

    def make_augmentation(self) -> Augmentation:
        """The settings that determine the rows."""
        from ..augmentation.run import Augmentation

        given = {name: getattr(self, name) for name in OF_A_PARAPHRASER if getattr(self, name) is not None}
        if self.keep_file:
            from ..generation.protected_text import DEFAULT_KEEP, check_keep

            # Jobs elsewhere may not see the file.
            terms = [f'"{term}"' for term in check_keep(self.keep_file)]
            given["keep"] = [*given.get("keep", DEFAULT_KEEP), *terms]
        return self.call(Augmentation, options={**given, **self.paraphraser_option})


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
        self.check_installed()
        if self.push_to_hub:
            check_push(self.output, self.hub_dataset_id)
        from ..augmentation.run import run_augmentation

        try:
            return self.call(run_augmentation, asked=self.make_augmentation(), executor_options=self.executor_option)
        except KeyboardInterrupt:
            echo("interrupted; the same command does what is missing", err=True)
            raise typer.Exit(130) from None

    def show(self, counts: Counter[str] | None) -> None:
        """Print the counts, and push the rows if asked to."""
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

            name = self.hub_dataset_id or Path(self.output).resolve().name
            echo(push_folder(self.output, name, private=self.hub_private_repo))


def check_push(output: str, repo_id: str | None) -> None:
    """Refuse a push that would fail, before hours of work."""
    from ..hub.push import check_access

    if "://" in output:
        raise InputError("--push-to-hub shares a folder of this machine; what goes to hf:// is on the Hub already")
    check_access(repo_id or Path(output).resolve().name)
