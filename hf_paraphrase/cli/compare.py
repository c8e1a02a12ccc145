"""The commands that compare several models on one split. What is heavy is imported inside the commands."""

from __future__ import annotations

import importlib.util
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .corpus import (
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    DatasetOption,
    EvaluatedSplit,
    MaxSamples,
    SampleSeed,
    TrainedCorpus,
    choose_corpus,
    read_corpus,
    take_rows,
)
from .options import (
    AllowOwnPair,
    ArgumentsCommand,
    MeteorStages,
    Metrics,
    NumSamples,
    RougeTokenize,
    Select,
    TrustRemoteCode,
    WordVectors,
    check_matplotlib,
    choose_metrics,
    parse_pairs,
)
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command(cls=ArgumentsCommand)
def compare(
    ctx: typer.Context,
    systems: Annotated[list[str], typer.Argument(metavar="NAME=PATH[,OPTION=VALUE…]...", help="What to compare.")],
    dataset: DatasetOption,
    output_dir: Annotated[Path, typer.Option(help="Where the evaluations and the table go.")],
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: MaxSamples = None,
    sample_seed: SampleSeed = None,
    num_beams: Annotated[int, typer.Option(min=1, help="Beam width.")] = 5,
    num_candidates: Annotated[int, typer.Option(min=1, help="Outputs to choose from.")] = 5,
    select: Select = "score",
    allow_own_pair: AllowOwnPair = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 64,
    against: Annotated[
        str | None, typer.Option(help="Name of the system to test the others against; by default the first.")
    ] = None,
    metrics: Metrics = "rouge,bleu,meteor,pinc",
    word_vectors: WordVectors = None,
    meteor_stages: MeteorStages = "exact,stem,wordnet",
    rouge_tokenize: RougeTokenize = "ascii",
    n_samples: NumSamples = 1000,
    n_trials: Annotated[int, typer.Option(min=2, help="Shuffles for the p-values.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 12345,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Compare paraphrasers on one split in one table, as Table 2 of Kazemnejad et al. 2020 does.

    \b
    hf-paraphrase compare FSET=runs/fset-quora-small "residual LSTM=runs/residual-lstm-quora-small" \\
        --dataset quora --dataset-name clean --data-dir data/quora --output-dir runs/comparison
    hf-paraphrase compare greedy=runs/first,num_beams=1 wide=runs/first,num_beams=10 --num-candidates 1 \\
        --dataset synthetic_questions --metrics bleu,pinc --output-dir runs/widths

    A system is NAME=PATH, and may have options of its own, which go before those for all: arguments of
    `evaluate_paraphraser`, or of `generate`, such as `NAME=PATH,num_beams=10,select=jaccard`. The table says how each
    chose among its outputs: by default it keeps the likeliest; Kazemnejad et al. 2020 keep the one most like the
    source (`--select jaccard`). Each system has a folder; what is evaluated there already is not evaluated again, so
    that a comparison that was stopped, or gets one more system, goes on. `comparison.md`, `.csv`, `.json` and, where
    matplotlib is installed and BLEU and PINC were asked for, `.png` hold what came out.
    """
    from ..evaluation.comparison import compare_paraphrasers, parse_system
    from ..evaluation.comparison_table import (
        format_comparison_as_csv,
        format_comparison_as_markdown,
        plot_quality_against_diversity,
    )
    from ..files import write_text

    chosen = choose_metrics(
        metrics,
        lowercase=True,
        tokenize="13a",
        word_vectors=word_vectors,
        meteor_variant="nltk",
        meteor_stages=meteor_stages,
        rouge_tokenize=rouge_tokenize,
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
        trust_remote_code=trust_remote_code,
    )
    table = format_comparison_as_markdown(results, shlex.join(["hf-paraphrase", "compare", *ctx.obj]))
    results.save(output_dir / "comparison.json")
    write_text(output_dir / "comparison.csv", format_comparison_as_csv(results), newline="")
    write_text(output_dir / "comparison.md", table)
    if importlib.util.find_spec("matplotlib") and all(map(results.entries[0].find, ("bleu_4", "pinc"))):
        plot_quality_against_diversity(results, output_dir / "comparison.png")
    echo(table, nl=False)


@app.command(cls=ArgumentsCommand)
def compare_choices(
    ctx: typer.Context,
    models: Annotated[list[str], typer.Argument(metavar="NAME=PATH...", help="Models.")],
    dataset: DatasetOption,
    encoder: Annotated[str, typer.Option(help="The judge of adequacy: a model of sentence-transformers.")],
    output_dir: Annotated[Path, typer.Option(help="Where the paraphrases and the table go.")],
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: MaxSamples = None,
    sample_seed: SampleSeed = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", metavar="OPTION=VALUE", help="An argument of Paraphraser; repeatable.")
    ] = None,
    num_beams: Annotated[int, typer.Option(min=1, help="Width of the search for the first beam.")] = 5,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at once.")] = 32,
    n_samples: NumSamples = 1000,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Show what choosing among candidates is worth: first beam, Paraphraser and Parrot's rules in one table.

    \b
    hf-paraphrase compare-choices words=runs/residual-lstm-quora-small pieces=runs/residual-lstm-quora-bpe \\
        --dataset quora --dataset-name clean --data-dir data/quora --encoder sentence-transformers/all-MiniLM-L6-v2 \\
        --set min_novelty=0.2 --output-dir runs/choices

    Scores are of the rows for which every way has a paraphrase: BLEU, iBLEU, PINC, the encoder's cosine, and the
    shares of the text's names, numbers and unknown words that are kept. `choices.md`, `choices.json` and, with every
    paraphrase, `choices.jsonl` hold what came out.
    """
    from ..evaluation.choices import compare_choices, format_choices
    from ..files import write_text

    compared = parse_pairs("NAME=PATH", models)
    corpus = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    results = compare_choices(
        compared,
        take_rows(corpus.load(split), max_samples, sample_seed),
        output_dir,
        encoder=encoder,
        num_beams=num_beams,
        batch_size=batch_size,
        n_samples=n_samples,
        split=split,
        data=corpus.describe(max_samples=max_samples, sample_seed=sample_seed),
        trust_remote_code=trust_remote_code,
        options=parse_pairs("--set", override or []),
    )
    table = format_choices(results, shlex.join(["hf-paraphrase", "compare-choices", *ctx.obj]))
    results.save(output_dir / "choices.json")
    write_text(output_dir / "choices.md", table)
    echo(table, nl=False)


@app.command()
def compare_language_models(
    recipes: Annotated[list[str], typer.Argument(help="Of `hf-paraphrase recipes`, or folders like theirs.")],
    output_dir: Annotated[Path, typer.Option(help="Where the runs, the figures and the chart go.")],
    dataset: TrainedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="A field for all recipes; repeatable.")
    ] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="A run of every recipe with each; repeatable.")] = None,
    split: EvaluatedSplit = "test",
    max_samples: Annotated[int | None, typer.Option(min=1, help="At most so many examples, evenly spaced.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Train language models for the same budget and chart their scores, as figure 3.2 of Traynor 2018 does.

    \b
    hf-paraphrase compare-language-models sarah-lm-gutenberg-small gru-lm-gutenberg-small \\
        --data-dir data/gutenberg --output-dir runs/comparison --set max_steps=1200 --seeds 1 --seeds 2

    Each run has a folder of its own; what is trained there already is not trained again, so that a comparison that was
    stopped goes on. `comparison.json` and `comparison.png` hold what came out.
    """
    check_matplotlib("compare-language-models")
    from ..evaluation.language_models import evaluate_language_model, plot_architectures
    from ..evaluation.results import Results
    from ..generation.engine import load_paraphraser
    from ..training.recipe import load_recipe
    from ..training.search import train_once

    runs, scores = [], {}
    fields = parse_pairs("--set", override or [])
    options = (dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    chosen = [choose_corpus(load_recipe(name).override(fields), *options) for name in recipes]
    for recipe, _ in chosen:
        if recipe.training.task != "language_model":
            raise InputError(f"recipe {recipe.name} is of `task: {recipe.training.task}`, not `language_model`")
    for recipe, corpus in chosen:
        for seed in seeds or [recipe.training.seed]:
            folder = output_dir / f"{recipe.name}-seed={seed}"
            kwargs = {"data_dir": corpus.data_dir, "trust_remote_code": trust_remote_code}
            summary = train_once(recipe.override({"seed": seed}), folder, kwargs)
            results = evaluate_language_model(
                *load_paraphraser(folder, trust_remote_code=trust_remote_code),
                corpus.load(split),
                objective=recipe.training.objective,
                max_samples=max_samples,
                output_dir=folder / "evaluation",
                split=split,
                data=corpus.describe(),
            )
            (made,) = results.entries
            score = made.scores[0].score
            scores.setdefault(recipe.name, []).append(score)
            spent = {"seed": seed, **{name: summary[name] for name in ("steps", "train_seconds")}}
            runs.append(replace(made, system=recipe.name, training=spent, environment=results.environment))
            echo(f"{recipe.name}, seed {seed}: {score:.3f} nits per character")
    runs.sort(key=lambda run: run.scores[0].score)
    Results("comparison", results.data, tuple(runs)).save(output_dir / "comparison.json")
    plot_architectures(scores, output_dir / "comparison.png")
