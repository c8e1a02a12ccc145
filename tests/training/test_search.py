from __future__ import annotations

import json

import pytest

from hf_paraphrase.errors import InputError
from hf_paraphrase.training import loop
from hf_paraphrase.training.loop import parse_grid, search

from .tiny_runs import make_pairs, make_recipe


def test_every_combination_is_trained_once(tmp_path, monkeypatch):
    grid = parse_grid(["learning-rate=0.02,0.001", "dropout=0,0.3"])
    assert grid == {"learning_rate": [0.02, 0.001], "dropout": [0, 0.3]}
    recipe, trained, train = make_recipe(max_steps=2), [], loop.train

    def record(recipe, folder, **kwargs):
        trained.append(folder.name)
        return train(recipe, folder, **kwargs)

    monkeypatch.setattr(loop, "train", record)
    first = search(recipe, grid, tmp_path, dataset=make_pairs(20, 5))
    assert len(trained) == len(set(trained)) == 4 and "learning_rate=0.02-dropout=0" in trained
    costs = [run["cost"] for run in first["runs"]]
    assert costs == sorted(costs) == [run["best"]["eval_loss"] for run in first["runs"]]
    assert json.loads((tmp_path / "search.json").read_text()) == first
    assert search(recipe, grid, tmp_path, dataset=make_pairs(20, 5)) == first
    assert len(trained) == 4


def test_values_are_checked_before_the_first_run(tmp_path):
    with pytest.raises(InputError, match="`learning_rate` must be greater than 0"):
        search(make_recipe(), {"learning_rate": [0.1, -1.0]}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["learning_rate", "learning_rate="])
def test_a_grid_without_values_is_refused(option):
    with pytest.raises(InputError, match="takes FIELD=VALUE,VALUE"):
        parse_grid([option])
