from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from hf_paraphrase.errors import InputError
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.fields import parse_scalar, read_yaml
from hf_paraphrase.training.recipe import load_recipe

from .tiny_runs import make_recipe


@pytest.fixture
def folder(tmp_path):
    make_recipe().save(tmp_path / "tiny")
    return tmp_path / "tiny"


def rewrite(path, **values):
    contents = read_yaml(path) | values
    path.write_text(json.dumps(contents))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("no", "no"), ("off", "off"), ("1:30", "1:30"), ("true", True), ("null", None), ("-1", -1)]
    + [("[tensorboard]", ["tensorboard"]), ("{seed: 1}", {"seed": 1}), ("a: b: c", "a: b: c"), (".5", 0.5)],
)
def test_values_are_read_as_yaml_1_2(text, value):
    parsed = parse_scalar(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_saved_recipe_is_read_back(folder):
    assert load_recipe(folder) == make_recipe()


def test_missing_folder_names_those_there_are(folder):
    with pytest.raises(FileNotFoundError, match="no recipe .*tinny; .* has: tiny"):
        load_recipe(folder.parent / "tinny")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "training.yaml"])
def test_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"lacks {name}"):
        load_recipe(folder)


@pytest.mark.parametrize(
    ("name", "field", "close"),
    [
        ("config.json", "hiden_size", "hidden_size"),
        ("generation_config.json", "num_beam", "num_beams"),
        ("training.yaml", "learning_rat", "learning_rate"),
    ],
)
def test_unknown_field_is_named_with_its_file_and_the_closest(folder, name, field, close):
    rewrite(folder / name, **{field: 1})
    with pytest.raises(InputError, match=f"{name}: unknown field `{field}`; did you mean {close}"):
        load_recipe(folder)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("config.json", "num_layers", 0),
        ("config.json", "model_type", "residual_lsmt"),
        ("generation_config.json", "num_beams", "five"),
        ("generation_config.json", "early_stopping", "maybe"),
        ("training.yaml", "learning_rate", "fast"),
        ("training.yaml", "optim", "adam"),
        ("training.yaml", "task", "paraphrasing"),
        ("training.yaml", "mixed_precision", False),
        ("training.yaml", "seed", True),
        ("training.yaml", "report_to", "tensorboard"),
    ],
)
def test_wrong_value_is_named_with_its_file(folder, name, field, value):
    rewrite(folder / name, **{field: value})
    with pytest.raises(InputError, match=f"{name}.*{field}"):
        load_recipe(folder)


@pytest.mark.parametrize(("name", "text"), [("config.json", "{"), ("config.json", "[]"), ("training.yaml", "a: [")])
def test_damaged_file_is_named(folder, name, text):
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=name):
        load_recipe(folder)


def test_dataset_and_model_type_are_required(folder):
    (folder / "training.yaml").write_text("seed: 1")
    with pytest.raises(InputError, match="`dataset` is missing"):
        load_recipe(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(InputError, match="`model_type` is missing"):
        load_recipe(folder)


def test_override_finds_the_part_that_has_the_field():
    recipe = make_recipe()
    changed = recipe.override(
        {"learning_rate": "5e-1", "hidden_size": "16", "num_beams": "5", "seed": 7, "mixed_precision": "no"}
    )
    assert changed.training == replace(recipe.training, learning_rate=0.5, seed=7, mixed_precision="no")
    assert changed.model_config == recipe.model_config | {"hidden_size": 16}
    assert changed.generation_config == recipe.generation_config | {"num_beams": 5}
    assert recipe == make_recipe()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hiden_size", "16", "unknown field `hiden_size`; did you mean hidden_size"),
        ("learning_rate", "fast", "`learning_rate` must be float, not 'fast'"),
        ("max_steps", "1.5", "`max_steps` must be int, not 1.5"),
        ("num_layers", "0", "num_layers"),
        ("num_beams", "0.5", "`num_beams` must be int or null, not 0.5"),
    ],
)
def test_override_refuses_what_does_not_fit(field, value, message):
    with pytest.raises(InputError, match=message):
        make_recipe().override({field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("train_batch_size", 0),
        ("gradient_accumulation_steps", 0),
        ("label_smoothing_factor", 1.0),
        ("weight_decay", -0.1),
        ("max_grad_norm", 0),
        ("warmup_steps", -1),
    ],
)
def test_values_out_of_range_are_refused(field, value):
    with pytest.raises(InputError, match=field):
        TrainingConfig(dataset="d", **{field: value})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train_batch_size": None}, "nothing bounds a batch"),
        ({"eval_strategy": "steps"}, "needs `eval_steps`"),
        ({"lr_scheduler_type": "step_halving", "warmup_steps": 5}, "has no warm-up"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(dataset="d", **values)


def test_every_field_says_what_it_does():
    assert all(option.metadata["help"].endswith(".") for option in fields(TrainingConfig))
