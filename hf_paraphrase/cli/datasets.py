"""The commands `hf-paraphrase datasets …`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.fields import option
from .corpus import ANY_CORPUS, CorpusOptions
from .options import check_matplotlib
from .terminal import echo
from .verbs import Verb, verb

if TYPE_CHECKING:
    import datasets

    from ..datasets.statistics import LengthCounts

__all__ = ["DescribeCorpus", "ListCorpora", "PreviewCorpus"]

# A longer cell is shortened in `preview`.
SHOWN = 300


@verb("datasets list")
class ListCorpora(Verb):
    """List the corpora.

    \b
    hf-paraphrase datasets list
    """

    def run(self) -> str:
        """A line for each corpus."""
        from ..datasets.loading import find_builder, list_datasets

        names = list_datasets()
        width = max(map(len, names))
        summaries = (
            (inspect.getdoc(find_builder(name)) or "").partition("\n\n")[0].replace("\n", " ") for name in names
        )
        return "\n".join(f"{name:<{width}}  {summary}" for name, summary in zip(names, summaries, strict=True))


@verb("datasets info")
class DescribeCorpus(Verb):
    """Print a corpus's card: source, layout, licence, columns, splits.

    \b
    hf-paraphrase datasets info quora
    """

    name: str = option("Corpus, one of `hf-paraphrase datasets list`.", positional=True)

    def run(self) -> str:
        """The card."""
        from ..datasets import dataset_card

        return dataset_card(self.name).text.strip()


@verb("datasets preview")
class PreviewCorpus(CorpusOptions):
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

    dataset: str = option(ANY_CORPUS, positional=True)
    rows: int = option("Rows of each split to show.", 3, least=0)
    plot: Path | None = option("A PNG file for the distribution of the lengths.", None)

    def run(self) -> None:
        """Print the rows, and draw the lengths where asked to."""
        from ..datasets.statistics import count_lengths, plot_lengths

        if self.plot is not None:
            check_matplotlib("--plot")
        corpus = self.find_corpus()
        if corpus.is_streamed:
            for split, content in corpus.stream().items():
                echo(f"{split}: streamed\n")
                for row in content.take(self.rows):
                    echo(_format_row(content, row))
            return
        splits = corpus.load()
        lengths = {split: count_lengths(content) for split, content in splits.items()}
        for split, content in splits.items():
            echo(f"{split}: {len(content):,} rows\n{_format_lengths(lengths[split])}\n")
            for row in content.select(range(min(self.rows, len(content)))):
                echo(_format_row(content, row))
        if self.plot is not None:
            split = next(iter(splits))
            curves = {f"{self.dataset}, {split}, {column}": counts for column, counts in lengths[split].items()}
            plot_lengths(curves, self.plot)
            echo(f"{self.plot}: lengths of {split}")


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
        # Streamed corpora may not know their features in advance.
        feature = content.features and content.features[column]
        if isinstance(feature, ClassLabel):
            value = feature.int2str(value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"  {column:<12}{text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
    return "\n".join(lines) + "\n"
