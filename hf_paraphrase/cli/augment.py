"""The command `hf-paraphrase augment`. What is heavy is imported inside it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..released import RELEASED
from .options import MaxSourceLength, TrustRemoteCode, parse_pairs
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command()
def augment(
    input: Annotated[
        str,
        typer.Argument(
            help="What to paraphrase: a .csv, .tsv, .jsonl or .parquet file, a folder of them, a corpus of "
            "`hf-paraphrase datasets list`, or owner/name of the Hub."
        ),
    ],
    column: Annotated[str, typer.Option(help="Its column with the text.")],
    output: Annotated[str, typer.Option(help="Folder, or where fsspec reaches, such as hf://datasets/you/yours.")],
    model: Annotated[
        str, typer.Option(help="Checkpoint folder or Hub repository of the model that writes.")
    ] = RELEASED,
    n: Annotated[int, typer.Option("-n", min=1, help="Paraphrases of each row, at most.")] = 3,
    keep_columns: Annotated[
        str | None, typer.Option(help="The other columns to keep, commas between; all by default.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Of a corpus or the Hub.  [default: train]")] = None,
    tasks: Annotated[
        int, typer.Option(min=1, help="Parts of the work, a Parquet file each; what is killed starts its part anew.")
    ] = 64,
    workers: Annotated[int, typer.Option(min=1, help="Tasks at a time, each with a model of its own.")] = 1,
    executor: Annotated[str, typer.Option(help="Where they run: local, slurm or ray.")] = "local",
    executor_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Argument of datatrove's executor, such as partition=gpu or gpus_per_task=1; repeatable.",
        ),
    ] = None,
    logging_dir: Annotated[
        str | None,
        typer.Option(
            help="Where what is done is noted, within reach of all machines.  [default: .augment in the output "
            "folder, or the cache where the output is elsewhere]"
        ),
    ] = None,
    min_adequacy: Annotated[float | None, typer.Option(min=0, max=1, help="Least adequacy.")] = None,
    min_fluency: Annotated[float | None, typer.Option(min=0, max=1, help="Least fluency.")] = None,
    min_novelty: Annotated[float | None, typer.Option(min=0, max=1, help="Least novelty (PINC).")] = None,
    diversity: Annotated[float | None, typer.Option(min=0, max=1, help="What likeness costs.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="What paraphrases keep, commas between: names, numbers, urls, addresses, placeholders, mentions, "
            "terms, code, quotes, and words of your own, in double quotes if need be; or none.  "
            "[default: all but code and quotes]"
        ),
    ] = None,
    decoding: Annotated[
        str | None, typer.Option(help="How candidates are found: beam, diverse_beam, dips, sample or noise.")
    ] = None,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Candidates to choose from.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="The longest candidate, in tokens.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all that is drawn; every row draws by itself.")] = None,
    backend: Annotated[
        str | None, typer.Option(help="ctranslate2, several times as fast on a CPU: BART, Marian, T5 and Pegasus.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows at once, those of like length together.")] = 16,
    max_source_length: MaxSourceLength = None,
    paraphraser_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Further argument of a Paraphraser's call, such as adequacy=embedding or num_beams=8; repeatable.",
        ),
    ] = None,
    push_to_hub: Annotated[bool, typer.Option("--push-to-hub", help="Share the output folder on the Hub.")] = False,
    hub_dataset_id: Annotated[str | None, typer.Option(help="Repository.  [default: name of the output]")] = None,
    hub_private_repo: Annotated[bool, typer.Option("--hub-private-repo", help="Make a new one private.")] = False,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Paraphrase a corpus, on one machine or many, without losing a row.

    \b
    hf-paraphrase augment questions.csv --column question -n 3 --output augmented
    hf-paraphrase augment questions.csv --model runs/first --column question -n 3 --output augmented \\
        --keep-columns label --workers 2 --min-adequacy 0.3
    hf-paraphrase augment questions.csv --model runs/first --column question --output augmented --executor slurm \\
        --workers 16 --executor-option partition=gpu --executor-option time=20:00:00 --executor-option gpus_per_task=1
    hf-paraphrase augment questions.csv --model runs/first --column question --output hf://datasets/you/augmented

    The output has Parquet files with a row for each paraphrase: the columns of the source that are kept, `source_id`,
    `paraphrase`, `rank`, `score`, `adequacy`, `fluency`, `novelty` and `error`, and a card with counts and settings.
    A source that failed, or of which no candidate passed, keeps a row that says why. datasets.load_dataset reads it.

    Whatever stops it, the same command does what is missing, and the rows are those that one quiet run gives. With
    slurm it submits jobs and returns; started again when they are done, it writes the card. Other settings need
    another output.
    """
    if find_spec("datatrove") is None:
        raise InputError("augment needs datatrove; install it with: pip install 'hf-paraphrase[augmentation]'")
    if push_to_hub:
        check_push(output, hub_dataset_id)
    from ..augmentation.run import Augmentation, run_augmentation
    from ..generation.keep import parse_keep

    options: dict[str, Any] = parse_pairs("--paraphraser-option", paraphraser_option or ())
    given = {
        "min_adequacy": min_adequacy,
        "min_fluency": min_fluency,
        "min_novelty": min_novelty,
        "diversity": diversity,
        "keep": None if keep is None else parse_keep(keep),
        "decoding": decoding,
        "num_candidates": num_candidates,
        "max_new_tokens": max_new_tokens,
        "seed": seed,
        "batch_size": batch_size,
        "max_source_length": max_source_length,
    }
    asked = Augmentation(
        input=input,
        model=model,
        column=column,
        n=n,
        keep_columns=None if keep_columns is None else _parse_names(keep_columns),
        split=split,
        tasks=tasks,
        backend=backend,
        options={**{name: value for name, value in given.items() if value is not None}, **options},
    )
    executor_options = parse_pairs("--executor-option", executor_option or ())
    try:
        counts = run_augmentation(
            asked,
            output,
            workers=workers,
            executor=executor,
            executor_options=executor_options,
            logging_dir=logging_dir,
            trust_remote_code=trust_remote_code,
        )
    except KeyboardInterrupt:
        echo("interrupted; the same command does what is missing", err=True)
        raise typer.Exit(130) from None
    if counts is None:
        echo("jobs are submitted; the same command, when they are done, does what is missing or writes the card")
        return
    echo(
        f"{counts['rows']:,} rows: {counts['paraphrases']:,} paraphrases; of {counts['without']:,} rows no candidate "
        f"passed, {counts['failed']:,} rows failed (`error` says why)"
    )
    if counts["cut"]:
        echo(f"{counts['cut']:,} rows are longer than what the model reads (`max_source_length`)", err=True)
    if push_to_hub:
        from ..hub.push import push_folder

        echo(push_folder(output, hub_dataset_id or Path(output).resolve().name, private=hub_private_repo))


def check_push(output: str, repo_id: str | None) -> None:
    """Refuse a push that can be told to fail, before the work of hours."""
    from ..hub.push import check_access

    if "://" in output:
        raise InputError("--push-to-hub shares a folder of this machine; what goes to hf:// is on the Hub already")
    check_access(repo_id or Path(output).resolve().name)


def _parse_names(value: str) -> list[str]:
    return [] if value == "none" else [name.strip() for name in value.split(",")]
