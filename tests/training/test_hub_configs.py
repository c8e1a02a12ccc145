from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.training.recipe import load_recipe

FOLDER = Path(__file__).resolve().parents[2] / "hub_configs"
PAPER = sorted(path.name for path in FOLDER.iterdir() if path.name.endswith(("-lstm-mscoco", "-lstm-mscoco-2layer")))


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_recipe_describes_a_model(name):
    recipe = load_recipe(FOLDER / name)
    with torch.device("meta"):
        model = AutoModelForSeq2SeqLM.from_config(recipe.make_config())
    assert model.num_parameters() > 0
    assert recipe.make_generation_config().num_beams in (1, 5)


def test_the_papers_eight_models_are_there():
    recipes = [load_recipe(FOLDER / name) for name in PAPER]
    models = {
        (config.num_layers, config.residual_interval, config.bidirectional_encoder, config.attention)
        for config in (recipe.make_config() for recipe in recipes)
    }
    kinds = [(0, False, None), (0, False, "additive"), (0, True, None), (2, False, None)]
    assert models == {(layers, *kind) for layers in (2, 4) for kind in kinds}


@pytest.mark.parametrize("name", PAPER)
def test_paper_settings(name):
    """Prakash et al. 2016, section 4.3 and Table 1."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.vocab_size, config.hidden_size, config.dropout) == (30332, 512, 0.5)
    assert (training.optim, training.learning_rate, training.num_train_epochs) == ("sgd", 1.0, 10)
    assert (training.halving_start_epoch, training.halving_interval_epochs) == (3, 3)
