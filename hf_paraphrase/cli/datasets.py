"""The commands that list, describe, preview and make corpora. What is heavy is imported inside them."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import write_lines
from ..common.installation import require
from .corpus import ANY_CORPUS, SPLITS, CorpusOptions
from .terminal import align_columns, echo, read_numbered_texts
from .verbs import Verb, verb

if TYPE_CHECKING:
    import datasets

    from ..datasets.statistics import LengthCounts

# A longer cell is shortened in `preview`.
SHOWN = 300


@verb("datasets list")
class ListCorpora(Verb):
    """List the corpora.

    \b
    hf-paraphrase datasets list
    """

    def run(self) -> str:
        from ..datasets.loading import find_builder, list_datasets

        documented = ((name, inspect.getdoc(find_builder(name)) or "") for name in list_datasets())
        return align_columns([(name, text.partition("\n\n")[0].replace("\n", " ")) for name, text in documented])


@verb("datasets info")
class DescribeCorpus(Verb):
    """Print a corpus's card: source, layout, licence, columns, splits.

    \b
    hf-paraphrase datasets info quora
    """

    name: str = option("Corpus, one of `hf-paraphrase datasets list`.", positional=True)

    def run(self) -> str:
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
        from ..datasets.statistics import count_lengths, plot_lengths

        if self.plot is not None:
            require("matplotlib", "plots", "--plot")
        corpus = self.find_corpus()
        splits = corpus.load(may_stream=True)
        if corpus.is_streamed:
            for split, content in splits.items():
                echo(f"{split}: streamed\n")
                for row in content.take(self.rows):
                    echo(_format_row(content, row))
            return
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
        form = "  {column:<12}{texts:>12,}{mean:>8.1f}{min:>6}{median:>8}{95%:>6}{max:>8,}"
        lines.append(form.format(column=column, **describe_lengths(counts)))
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


@verb("mine")
class Mine(Verb):
    """Find paraphrase pairs among the sentences of a file.

    \b
    hf-paraphrase mine questions.txt --output mined --min-score 0.85
    hf-paraphrase mine questions.txt --output mined --encoder jaccard --min-score 0.5 --max-score 0.9
    hf-paraphrase train --recipe t5-small-quora --dataset pairs --data-files train=mined/train.jsonl \\
        --data-files validation=mined/validation.jsonl --output-dir runs/mined

    The pairs are split into train, validation and test files for the corpus `pairs`. Each row has `source`, `target`,
    `score` and `lines`, the line numbers of both texts. No text occurs in two splits. A high score does not prove that
    two texts mean the same: inspect some pairs before you train on them.
    """

    file: Path = option("File of texts: .csv, .tsv, .jsonl, .parquet, or one text per line.", positional=True)
    column: str | None = option("The column of a table that holds the texts.  [default: text or source]", None)
    output: Path = option("Folder for train.jsonl, validation.jsonl and test.jsonl.")
    encoder: str = option(
        "What says how alike two texts are: a folder or Hub repository of sentence-transformers, or of any model that "
        "embeds, or jaccard, which compares their words.",
        "sentence-transformers/all-MiniLM-L6-v2",
    )
    min_score: float = option("Minimum similarity of a pair.", 0.8, least=-1, most=1)
    max_score: float = option("Maximum similarity, to leave out near copies.", 1.0, most=1)
    top_k: int = option("Nearest neighbours to consider per text.", 10, least=1)
    max_pairs: int = option("Maximum number of pairs; the best are kept.", 500_000, least=1)
    validation_size: int = option("Maximum number of validation pairs.", 1000, least=0)
    test_size: int = option("Maximum number of test pairs.", 1000, least=0)
    max_held_out: float = option("Maximum share of pairs in validation and test together.", 0.2, least=0, most=1)
    seed: int = option("Random seed of the split.", 42)
    batch_size: int = option("Batch size of the encoder.", 64, least=1)
    overwrite: bool = option("Replace existing files.", False)
    trust_remote_code: bool = option("Run the code in the encoder's folder, and read pickled weights.", False)

    def run(self) -> None:
        from ..datasets.sampling import divide_linked, held_out_sizes
        from ..retrieval.mining import mine_paraphrases

        paths = {split: self.output / f"{split}.jsonl" for split in SPLITS}
        there = [str(path) for path in paths.values() if path.exists()]
        if there and not self.overwrite:
            raise FileExistsError(f"--output: {', '.join(there)} already exists; pass --overwrite to replace it")
        # Of equal texts the first speaks for all: memory follows the distinct ones.
        lines: dict[str, int] = {}
        for number, text in read_numbered_texts(self.file, self.column):
            lines.setdefault(" ".join(text.split()), number)
        lines.pop("", None)
        texts, numbers = list(lines), list(lines.values())
        encoding = {"batch_size": self.batch_size, "trust_remote_code": self.trust_remote_code}
        mined = self.call(mine_paraphrases, texts=texts, **encoding)
        if not mined:
            raise InputError(
                f"{self.file}: no two of its {len(texts):,} texts are from {self.min_score} to {self.max_score} alike"
            )
        pairs = [(texts[pair.first], texts[pair.second]) for pair in mined]
        sizes = held_out_sizes(len(pairs), self.validation_size, self.test_size, self.max_held_out)
        self.output.mkdir(parents=True, exist_ok=True)
        for split, places in divide_linked(pairs, *sizes, self.seed).items():
            rows = (
                {
                    "source": pairs[place][0],
                    "target": pairs[place][1],
                    "score": round(mined[place].score, 4),
                    "lines": [numbers[mined[place].first], numbers[mined[place].second]],
                }
                for place in places
            )
            write_lines(paths[split], rows)
            echo(f"{paths[split]}: {len(places):,} pairs")
