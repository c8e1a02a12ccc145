from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..common.fields import parse_scalar
from ..common.files import read_json_object, write_text
from ..errors import InputError
from . import loop
from .recipe import Recipe

__all__ = ["parse_grid", "search", "train_once"]


def search(
    recipe: Recipe, grid: Mapping[str, Sequence[Any]], output_dir: str | os.PathLike, **kwargs: Any
) -> dict[str, Any]:
    """Train a recipe with every combination of some values, and say which did best in validation.

    Each combination is a run of `loop.train` in a folder named after it; finished runs are reused, so an interrupted
    search resumes.

    Args:
        grid: Fields of the recipe, and the values to try.
        output_dir: Folder of the search; `search.json` lists the runs, the best first.
        kwargs: Further arguments of `loop.train`, such as `data_dir`.

    Returns:
        What `search.json` holds: of each run its `values`, `folder`, the `best` validation and its `cost`.

    Raises:
        InputError: A field or value that the recipe cannot have.
    """
    for name, values in grid.items():
        for value in values:
            recipe.override({name: value})
    runs: list[dict[str, Any]] = []
    for combination in product(*grid.values()):
        values = dict(zip(grid, combination, strict=True))
        folder = "-".join(f"{name}={value}" for name, value in values.items())
        summary = train_once(recipe.override(values), Path(output_dir) / folder, kwargs)
        runs.append({"values": values, "folder": folder, "best": summary["best"], "cost": summary["best_cost"]})
    result = {"recipe": recipe.name, "runs": sorted(runs, key=lambda run: run["cost"])}
    write_text(Path(output_dir) / "search.json", json.dumps(result, indent=2) + "\n")
    return result


def train_once(recipe: Recipe, folder: Path, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Train or resume as `loop.train` does; finished runs in this folder are only read.

    Returns:
        What `training_summary.json` holds.
    """
    summary = folder / "training_summary.json"
    if summary.is_file():
        return read_json_object(summary)
    return loop.train(recipe, folder, resume=any(folder.glob("checkpoints/last-*")), **kwargs)


def parse_grid(options: Sequence[str]) -> dict[str, list[Any]]:
    """Read `["learning_rate=0.05,0.005", "weight_decay=0,1e-6"]` as fields and the values to try.

    Raises:
        InputError: An option has no `=` or no value.
    """
    grid = {}
    for option in options:
        name, _, values = option.partition("=")
        if not values:
            raise InputError(f"--search takes FIELD=VALUE,VALUE, got {option!r}")
        grid[name.replace("-", "_")] = [parse_scalar(value) for value in values.split(",")]
    return grid
