"""The command `hf-paraphrase recipes`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..common.fields import option
from .terminal import echo
from .verbs import Verb, verb

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["ListRecipes", "describe_recipe"]

COLUMNS = ("recipe", "paper", "corpus", "what the paper reports, and of which model")
# Trains in minutes on a corpus that comes with the package.
FIRST_RECIPE = "residual-lstm-synthetic"


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
        """Print the table, or JSON."""
        if self.as_json:
            echo(json.dumps(described, indent=2, ensure_ascii=False))
        elif isinstance(described, dict):
            for file, fields in described.items():
                echo(f"{file}:")
                lines = [(f"  {name}: {json.dumps(value)}", origin) for name, (value, origin) in fields.items()]
                width = min(60, max((len(line) for line, _ in lines), default=0))
                for line, origin in lines:
                    echo(f"{line:<{width}}  # {origin}")
        else:
            echo(_format_table([COLUMNS, *map(_cells, described)]))
            echo(f"Start with {FIRST_RECIPE}: it needs no download and trains in minutes.")


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

    from ..pretrained import make_model
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


def _format_table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"{{:<{width}}}" for width in widths)
    return "\n".join(line.format(*row).rstrip() for row in rows)
