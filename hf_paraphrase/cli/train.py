"""The commands that train, and show how it went. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from ..errors import InputError
from .corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, TrainedCorpus, choose_corpus
from .hub import push_trained
from .options import ArgumentsCommand, TrustRemoteCode, check_matplotlib
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


# A recipe of each task.
TASK_RECIPES = {
    "paraphrase": "residual-lstm-synthetic",
    "edit": "fset-synthetic",
    "decompose": "dnpg-synthetic",
    "adapt": "dnpg-quora-to-twitter-url",
    "match": "coupled-lstm-twitter-small",
    "autoencode": "hierarchical-autoencoder-hotel-reviews-small",
    "language_model": "sarah-lm-gutenberg-small",
}


class _TrainCommand(ArgumentsCommand):
    """Adds the fields of `training.yaml` to `--help`: those of the recipe's task, or what all tasks have."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        given, _, _ = self.make_parser(ctx).parse_args(list(ctx.obj))
        if "recipe" in given:
            from ..training.recipe import load_recipe

            training = load_recipe(given["recipe"]).training
            with formatter.section(f"Fields of training.yaml, `task: {training.task}`, as {given['recipe']} has them"):
                formatter.write_dl(self._describe_fields(type(training), vars(training)))
            return
        from ..training.arguments import TrainingConfig

        with formatter.section("Fields of training.yaml that all tasks have"):
            formatter.write_dl(self._describe_fields(TrainingConfig, {}))
        with formatter.section("Tasks, and how to see the fields of each, by a recipe of it"):
            formatter.write_dl(
                [(task, f"hf-paraphrase train --recipe {name} --help") for task, name in TASK_RECIPES.items()]
            )

    def _describe_fields(self, config: type, values: dict[str, Any]) -> list[tuple[str, str]]:
        types, options = get_type_hints(config), {parameter.name for parameter in self.params}
        return [
            (f"--{field.name}", _describe_field(field, types[field.name], values))
            for field in fields(config)
            if field.name not in options
        ]


def _describe_field(field: Field, kind: Any, values: dict[str, Any]) -> str:
    default = values.get(field.name, field.default if field.default_factory is MISSING else field.default_factory())
    notes = [" | ".join(get_args(kind))] if get_origin(kind) is Literal else []
    notes.append("required" if default is MISSING else f"default: {json.dumps(default)}")
    return f"{field.metadata['help']}  [{'; '.join(notes)}]"


@app.command(cls=_TrainCommand, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    ctx: typer.Context,
    recipe: Annotated[
        str, typer.Option(help="One of `hf-paraphrase recipes`, or a folder with files like those of one.")
    ],
    output_dir: Annotated[Path, typer.Option(help="Where the model, the checkpoints and the logs go.")],
    dataset: TrainedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in the output folder.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the output folder, if there is one.")
    ] = False,
    push_to_hub: Annotated[bool, typer.Option("--push-to-hub", help="Share the trained model on the Hub.")] = False,
    hub_model_id: Annotated[
        str | None, typer.Option(help="The repository; by default the output folder's name, in your namespace.")
    ] = None,
    hub_private_repo: Annotated[bool, typer.Option("--hub-private-repo", help="Make a new one private.")] = False,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--search", metavar="FIELD=VALUE,…", help="Train with each value; repeatable, for all combinations."
        ),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Train a model as a recipe says.

    \b
    hf-paraphrase train --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/wide --hidden_size 512 --seed 7
    hf-paraphrase train --recipe residual-lstm-quora-small --output-dir runs/mine \\
        --dataset pairs --data-files mine.csv --dataset-kwargs source_column=question
    accelerate launch scripts/train.py --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco

    Any field of the recipe can be overridden: --field value; those of its config.json and generation_config.json too.
    A push that fails leaves the trained model as it is; the command that it prints finishes it.
    """
    from ..training.loop import train as run_training
    from ..training.recipe import load_recipe

    chosen = load_recipe(recipe).override(_parse_overrides(ctx.args))
    chosen, corpus = choose_corpus(chosen, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    if grid and push_to_hub:
        raise InputError("--search trains several models; share the best one afterwards with: hf-paraphrase push DIR")
    repo_id = hub_model_id or output_dir.resolve().name
    if push_to_hub:
        from ..hub.push import check_access

        check_access(repo_id)
    if grid:
        from ..training.search import parse_grid, search

        options = {"data_dir": corpus.data_dir, "trust_remote_code": trust_remote_code}
        for run in search(chosen, parse_grid(grid), output_dir, **options)["runs"]:
            echo(f"{run['cost']:.4f}  {run['folder']}")
        return
    run_training(
        chosen,
        output_dir,
        data_dir=corpus.data_dir,
        overwrite=overwrite,
        resume=resume,
        trust_remote_code=trust_remote_code,
    )
    if push_to_hub:
        push_trained(output_dir, repo_id, hub_private_repo)


@app.command()
def curves(
    runs: Annotated[list[Path], typer.Argument(help="Output folders of `train`.")],
    output: Annotated[Path, typer.Option(help="The picture to write, for instance curves.png.")],
    fine_tuning: Annotated[
        bool, typer.Option("--fine-tuning", help="Of language models: nits per character, on the general set too.")
    ] = False,
) -> None:
    """Draw the learning curves of one or several runs: train and validation perplexity by epoch.

    \b
    hf-paraphrase curves runs/plain runs/residual --output curves.png
    hf-paraphrase curves runs/fine-tuned runs/from-scratch --fine-tuning --output curves.png
    """
    check_matplotlib("curves")
    from ..training.curves import plot_learning_curves

    if fine_tuning:
        from ..evaluation.language_models import plot_fine_tuning

        plot_fine_tuning({str(run): run for run in runs}, output)
    else:
        plot_learning_curves({str(run): run for run in runs}, output)


def _parse_overrides(args: list[str]) -> dict[str, str]:
    """`["--learning-rate", "0.5", "--optim=sgd"]` -> `{"learning_rate": "0.5", "optim": "sgd"}`."""
    overrides, rest = {}, iter(args)
    for argument in rest:
        if not argument.startswith("--"):
            raise InputError(f"unexpected argument {argument!r}; override a field of the recipe with --field value")
        name, has_value, value = argument[2:].partition("=")
        if not has_value:
            value = next(rest, "--")
            if value.startswith("--"):
                raise InputError(f"--{name} needs a value, for instance --{name} true")
        overrides[name.replace("-", "_")] = value
    return overrides
