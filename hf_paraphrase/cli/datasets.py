"""The commands `hf-paraphrase datasets …`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, read_corpus
from .options import check_matplotlib
from .terminal import echo

if TYPE_CHECKING:
    import datasets

    from ..datasets.statistics import LengthCounts

__all__ = ["app"]

# A longer cell is shortened in `preview`.
SHOWN = 300

app = typer.Typer(no_args_is_help=True, help="The corpora: which there are, what they are, and what is in them.")


@app.command("list")
def list_all() -> None:
    """List the corpora.

    \b
    hf-paraphrase datasets list
    """
    from ..datasets.loading import find_builder, list_datasets

    names = list_datasets()
    width = max(map(len, names))
    for name in names:
        summary = inspect.getdoc(find_builder(name)).partition("\n\n")[0].replace("\n", " ")
        echo(f"{name:<{width}}  {summary}")


@app.command()
def info(name: Annotated[str, typer.Argument(help="Corpus, one of `hf-paraphrase datasets list`.")]) -> None:
    """Print a corpus's card: where to get it, its layout, licence, columns, splits and arguments.

    \b
    hf-paraphrase datasets info quora
    """
    from ..datasets import dataset_card

    echo(dataset_card(name).text.strip())


@app.command()
def preview(
    name: Annotated[
        str,
        typer.Argument(
            help="Corpus, one of `hf-paraphrase datasets list`; or owner/name of the Hub, a file or a folder that "
            "datasets reads."
        ),
    ],
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of each split to show.")] = 3,
    plot: Annotated[Path | None, typer.Option(help="A PNG file for the distribution of the lengths.")] = None,
) -> None:
    """Show rows of every split and how long their texts are.

    \b
    hf-paraphrase datasets preview mscoco --data-dir data/mscoco --plot lengths.png
    hf-paraphrase datasets preview quora --data-dir data/quora --dataset-name clean --rows 10
    hf-paraphrase datasets preview pairs --data-files mine.csv --dataset-kwargs source_column=question
    hf-paraphrase datasets preview sentence-transformers/quora-duplicates --dataset-name pair-class \\
        --dataset-kwargs columns.sentence1=sentence1 --dataset-kwargs columns.sentence2=sentence2 \\
        --dataset-kwargs columns.label=label
    hf-paraphrase datasets preview allenai/c4 --dataset-name en --dataset-kwargs streaming=true --rows 5

    Streamed rows are shown without their lengths, which would need all of them.
    """
    from ..datasets.statistics import count_lengths, plot_lengths

    if plot is not None:
        check_matplotlib("--plot")
    corpus = read_corpus(name, dataset_name, data_dir, data_files, dataset_kwargs)
    if corpus.is_streamed:
        for split, content in corpus.stream().items():
            echo(f"{split}: streamed\n")
            for row in content.take(rows):
                echo(_format_row(content, row))
        return
    splits = corpus.load()
    lengths = {split: count_lengths(content) for split, content in splits.items()}
    for split, content in splits.items():
        echo(f"{split}: {len(content):,} rows\n{_format_lengths(lengths[split])}\n")
        for row in content.select(range(min(rows, len(content)))):
            echo(_format_row(content, row))
    if plot is not None:
        split = next(iter(splits))
        plot_lengths({f"{name}, {split}, {column}": counts for column, counts in lengths[split].items()}, plot)
        echo(f"{plot}: lengths of {split}")


def _format_lengths(lengths: dict[str, LengthCounts]) -> str:
    from ..datasets.statistics import describe_lengths

    lines = [f"  {'words':<12}{'texts':>12}{'mean':>8}{'min':>6}{'median':>8}{'95%':>6}{'max':>8}"]
    for column, counts in lengths.items():
        figures = describe_lengths(counts)
        lines.append(
            f"  {column:<12}{figures['texts']:>12,}{figures['mean']:>8.1f}{figures['min']:>6}{figures['median']:>8}"
            f"{figures['95%']:>6}{figures['max']:>8,}"
        )
    return "\n".join(lines)


def _format_row(content: datasets.Dataset | datasets.IterableDataset, row: dict[str, Any]) -> str:
    from datasets import ClassLabel

    lines = []
    for column, value in row.items():
        # What is streamed need not say beforehand what it holds.
        feature = content.features and content.features[column]
        if isinstance(feature, ClassLabel):
            value = feature.int2str(value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"  {column:<12}{text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
    return "\n".join(lines) + "\n"
