r"""Compare paraphrasers on one split, as Table 2 of Kazemnejad et al. 2020 does:

    python scripts/compare_paraphrasers.py "FSET=runs/fset-quora-small" "Transformer=runs/transformer-quora-small" \
        "residual LSTM=runs/residual-lstm-quora-small" --dataset quora --dataset-name clean --data-dir data/quora \
        --max-samples 1500 --sample-seed 1 --output-dir runs/comparison

A system is NAME=PATH, and may have options of its own, which go before those for all: arguments of
`evaluate_paraphraser`, or of `generate`, such as `NAME=PATH,num_beams=10,select=jaccard`. The table says how each
chose among its outputs: by default it keeps the likeliest; Kazemnejad et al. 2020 keep the one most like the source
(`--select jaccard`). Each system has a folder; what is evaluated there already is not evaluated again, so that a
comparison that was stopped, or gets one more system, goes on. `comparison.md`, `.csv`, `.json` and, where matplotlib
is installed and BLEU and PINC were asked for, `.png` hold what came out.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.cli.corpus import (
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    DatasetOption,
    EvaluatedSplit,
    SampleSeed,
    read_corpus,
    take_rows,
)
from hf_paraphrase.cli.options import AllowOwnPair, MeteorStages, Metrics, NumSamples, WordVectors, choose_metrics
from hf_paraphrase.errors import InputError
from hf_paraphrase.evaluation.comparison import compare_paraphrasers, parse_system
from hf_paraphrase.evaluation.comparison_table import (
    format_comparison_as_csv,
    format_comparison_as_markdown,
    plot_quality_against_diversity,
)
from hf_paraphrase.files import write_text


def main(
    systems: Annotated[list[str], typer.Argument(metavar="NAME=PATH[,OPTION=VALUE…]...", help="What to compare.")],
    dataset: DatasetOption,
    output_dir: Annotated[Path, typer.Option(help="Where the evaluations and the table go.")],
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: Annotated[int | None, typer.Option(min=1, help="At most so many rows of it.")] = None,
    sample_seed: SampleSeed = None,
    num_beams: Annotated[int, typer.Option(min=1, help="Beam width.")] = 5,
    num_candidates: Annotated[int, typer.Option(min=1, help="Outputs to choose from.")] = 5,
    select: Annotated[str, typer.Option(help="How: score, jaccard, embedding or matcher.")] = "score",
    allow_own_pair: AllowOwnPair = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 64,
    against: Annotated[
        str | None, typer.Option(help="Name of the system to test the others against; by default the first.")
    ] = None,
    metrics: Metrics = "rouge,bleu,meteor,pinc",
    word_vectors: WordVectors = None,
    meteor_stages: MeteorStages = "exact,stem,wordnet",
    n_samples: NumSamples = 1000,
    n_trials: Annotated[int, typer.Option(min=2, help="Shuffles for the p-values.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 12345,
) -> None:
    """Evaluate what is not evaluated yet, and print the table."""
    chosen = choose_metrics(
        metrics,
        lowercase=True,
        tokenize="13a",
        word_vectors=word_vectors,
        meteor_variant="nltk",
        meteor_stages=meteor_stages,
    )
    compared = [parse_system(text) for text in systems]
    corpus = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    rows = take_rows(corpus.load(split), max_samples, sample_seed)
    results = compare_paraphrasers(
        compared,
        rows,
        output_dir,
        options={
            "num_beams": num_beams,
            "num_candidates": num_candidates,
            "select": select,
            "allow_own_pair": allow_own_pair,
            "batch_size": batch_size,
        },
        metrics=chosen["metrics"],
        metric_options=chosen["options"],
        against=against,
        n_samples=n_samples,
        n_trials=n_trials,
        seed=seed,
        split=split,
        data=corpus.describe(max_samples=max_samples, sample_seed=sample_seed),
    )
    table = format_comparison_as_markdown(results, shlex.join(["python", *sys.argv]))
    results.save(output_dir / "comparison.json")
    write_text(output_dir / "comparison.csv", format_comparison_as_csv(results))
    write_text(output_dir / "comparison.md", table)
    if importlib.util.find_spec("matplotlib") and all(map(results.entries[0].find, ("bleu_4", "pinc"))):
        plot_quality_against_diversity(results, output_dir / "comparison.png")
    print(table, end="")


if __name__ == "__main__":
    try:
        typer.run(main)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
