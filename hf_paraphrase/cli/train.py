"""The commands that train, and show what with and how it went. What is heavy is imported inside them."""

from __future__ import annotations

import json
import time
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ..common.errors import InputError
from ..common.fields import default_of, option
from ..common.installation import require
from .corpus import ANY_CORPUS, CorpusOptions, choose_corpus, pick_split
from .hub import push_trained
from .terminal import align_columns, echo
from .verbs import Verb, VerbCommand, verb

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

RECIPE_COLUMNS = ("recipe", "paper", "corpus", "what the paper reports, and of which model")
# A recipe of each task; the first trains in minutes on a corpus that comes with the package.
TASK_RECIPES = {
    "paraphrase": "residual-lstm-synthetic",
    "edit": "fset-synthetic",
    "decompose": "dnpg-synthetic",
    "adapt": "dnpg-quora-to-twitter-url",
    "answer": "smollm2-135m-open",
    "match": "coupled-lstm-twitter-small",
    "autoencode": "hierarchical-autoencoder-hotel-reviews-small",
    "denoise": "transformer-open-denoise",
    "language_model": "sarah-lm-gutenberg-small",
}


@verb("recipes")
class ListRecipes(Verb):
    """List the recipes, or explain the fields of one.

    \b
    hf-paraphrase recipes
    hf-paraphrase recipes residual-lstm-quora-small
    hf-paraphrase recipes --json
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/first

    Each with paper, corpus, and what the paper reports. --json adds the number of parameters, at the recipe's largest
    vocabulary; null means the starting checkpoint's. The paper is that of the architecture; its figures are for the
    same architecture and depth, at any width. Of one recipe, every field is shown with the recipe that states it,
    since recipes extend each other.
    """

    name: str | None = option("A recipe, or a folder with files like those of one.", None, positional=True)
    as_json: bool = option("A JSON list, with every figure of the papers.", False, flag="--json")

    def run(self) -> list[dict[str, Any]] | dict[str, dict[str, tuple[Any, str]]]:
        """What each recipe trains; of one its fields by file, each with its value and the recipe that states it."""
        from ..training.recipe import list_recipes, trace_recipe

        if self.name is not None:
            return trace_recipe(self.name)
        return [describe_recipe(name, with_size=self.as_json) for name in list_recipes()]

    def show(self, described: list[dict[str, Any]] | dict[str, dict[str, tuple[Any, str]]]) -> None:
        if self.as_json:
            echo(json.dumps(described, indent=2, ensure_ascii=False))
        elif isinstance(described, dict):
            for file, values in described.items():
                echo(f"{file}:")
                lines = [(f"  {name}: {json.dumps(value)}", origin) for name, (value, origin) in values.items()]
                width = min(60, max((len(line) for line, _ in lines), default=0))
                for line, origin in lines:
                    echo(f"{line:<{width}}  # {origin}")
        else:
            echo(align_columns([RECIPE_COLUMNS, *map(_cells, described)]))
            echo(f"Start with {TASK_RECIPES['paraphrase']}: it needs no download and trains in minutes.")


def describe_recipe(name: str, with_size: bool = True) -> dict[str, Any]:
    """What a recipe trains.

    Args:
        name: As `load_recipe` takes it.
        with_size: Build the model to count its parameters, which takes most of the time.

    Returns:
        `name`, `paper` (None where the architecture is of none), `task`, `model_type`, `dataset` and `dataset_name`,
        `mixture`, the names of its corpora (none where there is but one), `num_parameters` (None without a size, or
        where the checkpoint to start from decides), and `reported`: the paper's rows, each with `model`, `num_beams`
        and `scores`.
    """
    from ..papers import find_paper, find_paper_rows
    from ..training.recipe import load_recipe

    recipe = load_recipe(name)
    config, training = recipe.make_config(), recipe.training
    paper = find_paper(config.model_type)
    is_sized = training.pretrained is None or recipe.model_config.keys() != {"model_type"}
    return {
        "name": recipe.name,
        "paper": paper and paper.name,
        "task": training.task,
        "model_type": config.model_type,
        "dataset": training.dataset,
        "dataset_name": training.dataset_name,
        "mixture": [corpus.title for corpus in training.corpora],
        "num_parameters": _count_parameters(training.task, config) if with_size and is_sized else None,
        "reported": [row._asdict() for row in find_paper_rows(config, training.dataset)],
    }


def _count_parameters(task: str, config: PreTrainedConfig) -> int:
    import torch

    from ..checkpoints.pretrained import make_model
    from ..training.tasks import TASKS

    with torch.device("meta"):
        return make_model(TASKS[task].auto_class, config).num_parameters()


def _cells(described: dict[str, Any]) -> tuple[str, ...]:
    corpus = "/".join(filter(None, (described["dataset"], described["dataset_name"])))
    corpus = corpus or " + ".join(described["mixture"])
    reported = "; ".join(_format_figures(described["reported"]))
    return (described["name"], described["paper"] or "", corpus, reported)


def _format_figures(rows: list[dict[str, Any]]) -> list[str]:
    """`["bleu_4 36.7 at beam 5, bleu_4 37.0 at beam 10: 4-layer residual, 512 units"]`, one text a model."""
    figures: dict[str, list[str]] = {}
    for row in rows:
        beam = "" if row["num_beams"] is None else f" at beam {row['num_beams']}"
        _, _, model = row["model"].partition(", ")
        # BLEU-4 where there is one, since most papers have it, or the first of its scores.
        name = "bleu_4" if "bleu_4" in row["scores"] else next(iter(row["scores"]))
        figures.setdefault(model, []).append(f"{name} {row['scores'][name]}{beam}")
    return [f"{', '.join(scores)}: {model}" for model, scores in figures.items()]


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
        described = []
        for field in (one for one in fields(config) if one.name not in options):
            kind, default = types[field.name], values.get(field.name, default_of(field))
            notes = [" | ".join(get_args(kind))] if get_origin(kind) is Literal else []
            notes.append("required" if default is MISSING else f"default: {json.dumps(default)}")
            described.append((f"--{field.name}", f"{field.metadata['help']}  [{'; '.join(notes)}]"))
        return described


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
    trust_remote_code: bool = option("Run the code in the checkpoints, and read pickled weights.", False)
    overrides: dict[str, Any] = option("Fields of the recipe.", factory=dict, rest=True, read=parse_overrides)

    def run(self) -> None:
        from ..training.loop import train
        from ..training.recipe import load_recipe

        recipe, corpus = choose_corpus(load_recipe(self.recipe).override(self.overrides), self)
        repo_id = self.hub_model_id or self.output_dir.resolve().name
        if self.push_to_hub:
            from ..hub.push import check_access

            check_access(repo_id)
        options: dict[str, Any] = {"data_dir": corpus.data_dir, "trust_remote_code": self.trust_remote_code}
        train(recipe, self.output_dir, overwrite=self.overwrite, resume=self.resume, **options)
        if self.push_to_hub:
            push_trained(self.output_dir, repo_id, self.hub_private_repo)


@verb("retriever train")
class TrainRetriever(CorpusOptions):
    """Train a sentence encoder for a retriever (RaE).

    \b
    hf-paraphrase retriever train --dataset quora --dataset-name clean --data-dir data/quora \\
        --output-dir runs/quora-encoder
    hf-paraphrase train --recipe rae-quora-small --data-dir data/quora --retriever-encoder runs/quora-encoder \\
        --output-dir runs/rae-quora-small

    The folder holds a model and a tokenizer for `ParaphraseRetriever.from_pairs(pairs, encoder=…)`. The command
    prints the share of validation sources that are nearer to their own target than to any other. It needs
    sentence-transformers (the extra `retrieval`).
    """

    output_dir: Path = option("Where the encoder goes.")
    dataset: str = option(ANY_CORPUS, "quora")
    vocab_size: int = option("Vocabulary size, special tokens included.", 8000, least=5)
    max_length: int = option("Tokens of a sentence; longer ones are cut.", 24, least=2)
    hidden_size: int = option("Width of the vectors.", 128, least=1)
    num_layers: int = option("Transformer layers.", 1, least=0)
    num_train_epochs: float = option("Passes over the pairs.", 3.0)
    train_batch_size: int = option("Batch size, in pairs.", 256, least=2)
    learning_rate: float = option("Highest learning rate.", 2e-3)
    seed: int = option("Seed of weights and batches.", 42)

    def run(self) -> str:
        from ..retrieval.encoders import AutoModelEncoder
        from ..retrieval.training import measure_recall, train_encoder

        pairs = self.find_corpus().load()
        validation = pick_split(pairs, "validation")
        started = time.perf_counter()
        self.call(train_encoder, pairs=pick_split(pairs, "train"))
        seconds = time.perf_counter() - started
        recall = measure_recall(AutoModelEncoder(self.output_dir), validation)
        return f"{seconds:.0f} s; {100 * recall:.1f}% of {len(validation)} sources find their own target first"


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
        require("matplotlib", "plots", "explain curves")
        from ..training.reporting import plot_learning_curves

        plot_learning_curves({str(run): run for run in self.runs}, self.output, self.fine_tuning)
