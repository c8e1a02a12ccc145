"""The commands that train, and show how it went. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..common.fields import default_of, option
from ..errors import InputError
from .corpus import CorpusOptions, choose_corpus
from .hub import push_trained
from .options import check_matplotlib
from .terminal import echo
from .verbs import Verb, VerbCommand, verb

__all__ = ["DrawCurves", "Train", "parse_overrides"]


# A recipe of each task.
TASK_RECIPES = {
    "paraphrase": "residual-lstm-synthetic",
    "edit": "fset-synthetic",
    "decompose": "dnpg-synthetic",
    "adapt": "dnpg-quora-to-twitter-url",
    "answer": "smollm2-135m-open",
    "match": "coupled-lstm-twitter-small",
    "autoencode": "hierarchical-autoencoder-hotel-reviews-small",
    "language_model": "sarah-lm-gutenberg-small",
}


class TrainCommand(VerbCommand):
    """Adds the fields of `training.yaml` to `--help`: those of the recipe's task, or those common to all tasks."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
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
    default = values.get(field.name, default_of(field))
    notes = [" | ".join(get_args(kind))] if get_origin(kind) is Literal else []
    notes.append("required" if default is MISSING else f"default: {json.dumps(default)}")
    return f"{field.metadata['help']}  [{'; '.join(notes)}]"


def parse_overrides(label: str, args: list[str]) -> dict[str, str]:
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


@verb("train")
class Train(CorpusOptions):
    """Train a model from a recipe.

    \b
    hf-paraphrase train --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/wide --hidden_size 512 --seed 7
    hf-paraphrase train --recipe residual-lstm-quora-small --output-dir runs/mine \\
        --dataset pairs --data-files mine.csv --dataset-kwargs source_column=question
    accelerate launch scripts/train.py --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco

    Any field of the recipe can be overridden: --field value; those of its config.json and generation_config.json too.
    A push that fails leaves the trained model as it is; the command that it prints finishes it.
    """

    command_class = TrainCommand
    context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    recipe: str = option("One of `hf-paraphrase recipes`, or a folder with files like those of one.")
    output_dir: Path = option("Where the model, the checkpoints and the logs go.")
    overwrite: bool = option("Replace a run in the output folder.", False)
    resume: bool = option("Resume the run in the output folder, if any.", False)
    push_to_hub: bool = option("Push the trained model to the Hub.", False)
    hub_model_id: str | None = option("The repository; by default the output folder's name, in your namespace.", None)
    hub_private_repo: bool = option("Create the repository as private.", False)
    grid: list[str] = option(
        "Train with each value; repeatable, for all combinations.",
        factory=list,
        flag="--search",
        metavar="FIELD=VALUE,…",
    )
    trust_remote_code: bool = option("Run the code in the checkpoints, and read pickled weights.", False)
    overrides: dict[str, Any] = option("Fields of the recipe.", factory=dict, rest=True, read=parse_overrides)

    def run(self) -> None:
        """Train, and push where asked to."""
        from ..training.loop import train
        from ..training.recipe import load_recipe

        recipe, corpus = choose_corpus(load_recipe(self.recipe).override(self.overrides), self)
        if self.grid and self.push_to_hub:
            raise InputError(
                "--search trains several models; share the best one afterwards with: hf-paraphrase push DIR"
            )
        repo_id = self.hub_model_id or self.output_dir.resolve().name
        if self.push_to_hub:
            from ..hub.push import check_access

            check_access(repo_id)
        options: dict[str, Any] = {"data_dir": corpus.data_dir, "trust_remote_code": self.trust_remote_code}
        if self.grid:
            from ..training.loop import parse_grid, search

            for run in search(recipe, parse_grid(self.grid), self.output_dir, **options)["runs"]:
                echo(f"{run['cost']:.4f}  {run['folder']}")
            return
        train(recipe, self.output_dir, overwrite=self.overwrite, resume=self.resume, **options)
        if self.push_to_hub:
            push_trained(self.output_dir, repo_id, self.hub_private_repo)


@verb("explain curves")
class DrawCurves(Verb):
    """Draw the learning curves of runs: perplexity by epoch.

    \b
    hf-paraphrase explain curves runs/plain runs/residual --output curves.png
    hf-paraphrase explain curves runs/fine-tuned runs/from-scratch --fine-tuning --output curves.png
    """

    runs: list[Path] = option("Output folders of `train`.", positional=True)
    output: Path = option("The picture to write, for instance curves.png.")
    fine_tuning: bool = option("Of language models: nits per character, on the general set too.", False)

    def run(self) -> None:
        """Draw."""
        check_matplotlib("explain curves")
        from ..evaluation.language_models import plot_fine_tuning
        from ..training.reporting import plot_learning_curves

        plot = plot_fine_tuning if self.fine_tuning else plot_learning_curves
        plot({str(run): run for run in self.runs}, self.output)
