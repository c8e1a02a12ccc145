from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, GenerationConfig

from hf_paraphrase.training.recipe import load_recipe
from hf_paraphrase.training.tasks import TASKS
from tests.models.tiny import shrink

FOLDER = Path(__file__).resolve().parents[2] / "hub_configs"
NAMES = sorted(path.name for path in FOLDER.iterdir())
PRAKASH = [name for name in NAMES if name.endswith(("-lstm-mscoco", "-lstm-mscoco-2layer"))]


@pytest.mark.parametrize("name", NAMES)
def test_recipe_describes_a_model(name):
    recipe = load_recipe(FOLDER / name)
    with torch.device("meta"):
        model = TASKS[recipe.training.task].auto_class.from_config(recipe.make_config())
    assert model.num_parameters() > 0


@pytest.mark.parametrize("name", NAMES)
def test_recipe_builds_a_small_model(name, tmp_path):
    """Everything that a training takes from the three files, and a checkpoint says; unknown fields fail on reading."""
    recipe = load_recipe(FOLDER / name)
    small = recipe.override(shrink(recipe.model_config))
    small.save(tmp_path / "recipe")
    assert load_recipe(tmp_path / "recipe").training == recipe.training
    auto_class = TASKS[recipe.training.task].auto_class
    model = auto_class.from_config(small.make_config())
    model.generation_config = small.make_generation_config()
    model.save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    for field, value in small.model_config.items():
        assert getattr(config, field) == value, field
    loaded = auto_class.from_pretrained(tmp_path)
    assert type(loaded) is type(model)
    for weight, saved in zip(loaded.state_dict().values(), model.state_dict().values(), strict=True):
        assert torch.equal(weight, saved)
    if model.can_generate():
        generation = GenerationConfig.from_pretrained(tmp_path)
        for field, value in recipe.generation_config.items():
            assert getattr(generation, field) == value, field


def test_the_eight_models_of_prakash_2016_are_there():
    recipes = [load_recipe(FOLDER / name) for name in PRAKASH]
    models = {
        (config.num_layers, config.residual_interval, config.bidirectional_encoder, config.attention)
        for config in (recipe.make_config() for recipe in recipes)
    }
    kinds = [(0, False, None), (0, False, "additive"), (0, True, None), (2, False, None)]
    assert models == {(layers, *kind) for layers in (2, 4) for kind in kinds}


@pytest.mark.parametrize("name", PRAKASH)
def test_settings_of_prakash_2016(name):
    """Section 4.3 and Table 1."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.vocab_size, config.hidden_size, config.dropout) == (30332, 512, 0.5)
    assert (training.optim, training.learning_rate, training.num_train_epochs) == ("sgd", 1.0, 10)
    assert (training.halving_start_epoch, training.halving_interval_epochs) == (3, 3)
    assert recipe.make_generation_config().num_beams == 5
