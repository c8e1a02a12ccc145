"""The commands `hf-paraphrase explain-match …`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, DatasetOption, read_corpus, take_rows

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="What excites the units of a coupled LSTM.")

Model = Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository of a coupled LSTM.")]


@app.command()
def heatmap(
    model: Model,
    text: Annotated[str, typer.Option(help="The first sentence.")],
    text_pair: Annotated[str, typer.Option(help="The second sentence.")],
    output: Annotated[Path, typer.Option(help="The PNG file to write.")],
    unit: Annotated[int | None, typer.Option(help="Unit to show; by default the one with the widest range.")] = None,
) -> None:
    """Draw a unit's activations over all pairs of words of two sentences.

    \b
    hf-paraphrase explain-match heatmap runs/coupled-lstm-snli --unit 17 --output unit-17.png \\
        --text "A person in a red shirt and black pants hunched over." --text-pair "A person wears a green shirt."
    """
    from ..analysis.matches import load_matcher, plot_unit, read_grids

    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("heatmap needs matplotlib; install it with: pip install 'hf-paraphrase[plots]'")
    (grid,) = read_grids(*load_matcher(model), [(text, text_pair)])
    typer.echo(f"{output}: unit {plot_unit(grid, output, unit)}")


@app.command()
def pairs(
    model: Model,
    dataset: DatasetOption,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: Annotated[str, typer.Option(help="Split to look through.")] = "test",
    rows: Annotated[int | None, typer.Option(min=1, help="First rows only.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Pairs of words for each unit.")] = 5,
    output: Annotated[Path | None, typer.Option(help="Markdown file to write; by default it is printed.")] = None,
) -> None:
    """List the pairs of words that excite each unit most, as a Markdown table.

    \b
    hf-paraphrase explain-match pairs runs/coupled-lstm-snli --dataset snli --data-dir data/snli --output pairs.md
    """
    from ..analysis.matches import format_exciting_pairs, load_matcher, most_exciting_pairs
    from ..files import write_text

    content = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs).load(split)
    if not {"sentence1", "sentence2"} <= set(content.column_names):
        raise InputError(f"{dataset} has no sentence pairs; its columns are {', '.join(content.column_names)}")
    content = take_rows(content, rows)
    texts = ((row["sentence1"], row["sentence2"]) for row in content if row["sentence2"])
    table = format_exciting_pairs(most_exciting_pairs(*load_matcher(model), texts, top=top))
    if output is None:
        typer.echo(table)
    else:
        write_text(output, table)
