from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, GenerationConfig

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


@pytest.mark.parametrize(
    "names", [("transformer-quora", "fset-quora"), ("transformer-5x-quora-small", "fset-quora-small")], ids="-".join
)
def test_the_transformer_has_five_times_the_parameters_of_fset(names):
    """Kazemnejad et al. 2020, section 4.3."""
    recipes = [load_recipe(FOLDER / name) for name in names]
    with torch.device("meta"):
        sizes = [
            TASKS[recipe.training.task].auto_class.from_config(recipe.make_config()).num_parameters()
            for recipe in recipes
        ]
    assert sizes[0] / sizes[1] == pytest.approx(5, rel=0.02)
    assert {recipe.make_config().vocab_size for recipe in recipes} == {8000}
    for field in ("train_batch_size", "max_source_length", "max_target_length", "dataset", "dataset_name"):
        assert getattr(recipes[0].training, field) == getattr(recipes[1].training, field), field


def test_the_transformer_trains_as_fset_does():
    """Kazemnejad et al. 2020, section 4.3."""
    for name in ("transformer-quora", "fset-quora"):
        training = load_recipe(FOLDER / name).training
        assert (training.max_steps, training.train_batch_size) == (100_000, 128)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("coupled-lstm-loose-1direction-snli", 45_403),
        ("coupled-lstm-loose-4directions-snli", 45_403),
        ("coupled-lstm-loose-stacked-snli", 136_003),
        ("coupled-lstm-tight-1direction-snli", 77_953),
        ("coupled-lstm-tight-4directions-snli", 77_953),
        ("coupled-lstm-tight-stacked-snli", 191_203),
    ],
)
def test_coupled_lstms_are_as_large_as_in_liu_2016(name, parameters):
    """Section 5: with SNLI's three labels and without embeddings; 190k for the best, and for one block of loosely
    coupled LSTMs nearly a fifth of the attention LSTM's 232,103."""
    config = load_recipe(FOLDER / name).make_config(num_labels=3)
    assert not config.match_features
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    assert model.num_parameters() - model.get_input_embeddings().weight.numel() == parameters


def test_features_of_pairs_of_words_are_ours_alone():
    """They are no part of the paper, and add two numbers to each of the five gates of its 25 units."""
    recipes = {name: load_recipe(FOLDER / name) for name in NAMES if name.startswith("coupled-lstm")}
    assert [name for name, recipe in recipes.items() if recipe.make_config().match_features] == [
        "coupled-lstm-twitter-features-small"
    ]
    recipe = recipes["coupled-lstm-twitter-features-small"]
    assert recipe.training.freeze_embeddings
    sizes = []
    for match_features in (False, True):
        with torch.device("meta"):
            config = recipe.make_config(match_features=match_features)
            model = AutoModelForSequenceClassification.from_config(config)
        sizes.append(model.num_parameters() - model.get_input_embeddings().weight.numel())
    assert sizes[1] - sizes[0] == 2 * 5 * 25


def test_reinforcement_goes_on_from_the_recipes_that_it_names():
    recipe = load_recipe(FOLDER / "rbm-quora-small")
    begun = load_recipe(FOLDER / Path(recipe.training.pretrained).name)
    assert recipe.model_config == begun.model_config | {"dropout": 0.0}
    assert recipe.training.dataset_name == begun.training.dataset_name == "clean"
    assert load_recipe(FOLDER / Path(recipe.training.reward).name).training.task == "match"


TRAYNOR = [name for name in NAMES if "-lm-" in name and not name.endswith("-small")]


@pytest.mark.parametrize("name", TRAYNOR)
def test_settings_of_traynor_2018(name):
    """Section 3.1.2, and in section 4.3 what stays frozen."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.vocab_size, config.embedding_size, config.max_characters, config.max_words) == (306, 32, 20, 30)
    assert (training.learning_rate, training.lr_scheduler_type, training.max_grad_norm) == (1e-4, "constant", 5)
    assert (training.train_batch_size, training.shuffle_buffer, training.interleaved_documents) == (64, 4096, 128)
    with torch.device("meta"):
        model = TASKS[training.task].auto_class.from_config(config)
    if training.objective == "autoencode":
        assert config.decode_window is None
        model.requires_grad_(False)
        for part in training.trained_parts:
            model.get_submodule(part).requires_grad_(True)
        learns = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert learns == {
            name
            for name, _ in model.named_parameters()
            if name.startswith("model.decoder.") and "word_decoder" not in name
        }


def test_the_three_sizes_of_traynor_2018():
    """Section 4.2.3."""
    wide, deep, wdn = (load_recipe(FOLDER / f"{name}-lm-books").make_config() for name in ("wide", "deep", "wdn"))
    assert (wide.num_layers, wide.value_size, wide.key_size) == (wdn.num_layers, wdn.value_size, wdn.key_size)
    assert (wide.num_layers, wide.value_size, wide.key_size) == (4, 2048, 512)
    assert (deep.num_layers, deep.value_size, deep.key_size) == (10, 1024, 256)
    assert (list(wide.word_encoder_sizes), len(wdn.word_encoder_sizes)) == ([2048] * 4, 6)
    assert list(deep.word_encoder_sizes) == [512] * 8 + [1024]
    assert list(deep.word_decoder_sizes) == [1024] * 2 + [512] * 8
    assert list(wdn.word_decoder_sizes) == [*wide.word_decoder_sizes, 1024, 512, 512, 512]
    assert {config.decode_window for config in (wide, deep, wdn)} == {20}
    assert wdn.sentence_projection and wdn.output_projection and wdn.sentence_noise == 1
