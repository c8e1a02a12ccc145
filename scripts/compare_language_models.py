r"""Train language models for the same budget and chart their test scores, as figure 3.2 of Traynor 2018 does:

    python scripts/compare_language_models.py hub_configs/sarah-lm-gutenberg-small hub_configs/gru-lm-gutenberg-small \
        hub_configs/transformer-lm-gutenberg-small --data-dir data/gutenberg --output-dir runs/comparison \
        --set max_steps=1200 --seeds 1 --seeds 2

Each run has a folder of its own; what is trained there already is not trained again, so that a comparison that was
stopped goes on. `comparison.json` and `comparison.png` hold what came out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.cli.corpus import (
    Corpus,
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    TrainedCorpus,
    choose_corpus,
)
from hf_paraphrase.cli.options import parse_pairs
from hf_paraphrase.evaluation.language_models import evaluate_language_model, plot_architectures
from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.generation.engine import load_paraphraser
from hf_paraphrase.training.recipe import load_recipe
from hf_paraphrase.training.search import train_once


def main(
    recipes: Annotated[list[Path], typer.Argument(help="Folders of recipes.")],
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
    split: Annotated[str, typer.Option(help="Split to compare on.")] = "test",
    max_samples: Annotated[int | None, typer.Option(min=1, help="At most so many examples of it.")] = None,
) -> None:
    """Train, evaluate and draw."""
    runs, scores = [], {}
    fields = parse_pairs("--set", override or [])
    options = (dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    chosen = [choose_corpus(load_recipe(path).override(fields), *options) for path in recipes]
    for recipe, corpus in chosen:
        for seed in seeds or [recipe.training.seed]:
            folder = output_dir / f"{recipe.name}-seed={seed}"
            summary = train_once(recipe.override({"seed": seed}), folder, {"data_dir": corpus.data_dir})
            results = evaluate(folder, recipe.training.objective, corpus, split, max_samples)
            (run,) = results.entries
            score = run.scores[0].score
            scores.setdefault(recipe.name, []).append(score)
            spent = {"seed": seed, **{name: summary[name] for name in ("steps", "train_seconds")}}
            runs.append(replace(run, system=recipe.name, training=spent, environment=results.environment))
            print(f"{recipe.name}, seed {seed}: {score:.3f} nits per character", flush=True)
    runs.sort(key=lambda run: run.scores[0].score)
    Results("comparison", results.data, tuple(runs)).save(output_dir / "comparison.json")
    plot_architectures(scores, output_dir / "comparison.png")


def evaluate(folder: Path, objective: str, corpus: Corpus, split: str, max_samples: int | None) -> Results:
    """Nits per character of a run on a split of the corpus."""
    return evaluate_language_model(
        *load_paraphraser(folder),
        corpus.load(split),
        objective=objective,
        max_samples=max_samples,
        output_dir=folder / "evaluation",
        split=split,
        data=corpus.describe(),
    )


if __name__ == "__main__":
    typer.run(main)
