from __future__ import annotations

import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.fields import parse_scalar, read_yaml
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.recipe import FOLDERS, find_recipe, list_recipes, load_recipe, trace_recipe

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


def test_fields_of_earlier_runs_are_read_where_they_asked_for_nothing(folder):
    rewrite(folder / "training.yaml", torch_compile=False)
    assert load_recipe(folder) == make_recipe()
    rewrite(folder / "training.yaml", torch_compile=True)
    with pytest.raises(InputError, match="torch_compile"):
        load_recipe(folder)


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


def extend(folder, name, training, **files):
    """A recipe beside `folder` that holds no more than it is told."""
    child = folder.parent / name
    child.mkdir()
    (child / "training.yaml").write_text(training)
    for file, values in files.items():
        (child / f"{file}.json").write_text(json.dumps(values))
    return child


def test_a_recipe_holds_what_differs_from_its_parent(folder):
    parent = make_recipe(dataset_kwargs={"seed": 1, "size": 9})
    parent.save(folder)
    child = load_recipe(extend(folder, "child", "extends: tiny\nseed: 7\ndataset_kwargs: {seed: 2}\n"))
    assert child == replace(
        parent, name="child", training=replace(parent.training, seed=7, dataset_kwargs={"seed": 2})
    )
    files = {"config": {"hidden_size": 16}, "generation_config": {"num_beams": 7}}
    grandchild = load_recipe(extend(folder, "grandchild", "extends: child\nlearning_rate: 0.5\n", **files))
    assert grandchild.model_config == parent.model_config | {"hidden_size": 16}
    assert grandchild.generation_config == parent.generation_config | {"num_beams": 7}
    assert grandchild.training == replace(child.training, learning_rate=0.5)


def test_a_saved_recipe_needs_no_parent(folder, tmp_path):
    child = load_recipe(extend(folder, "child", "extends: tiny\nseed: 7\n"))
    child.save(tmp_path / "run" / "child")
    assert load_recipe(tmp_path / "run" / "child") == child


def test_the_fields_of_another_architecture_are_not_taken_over(folder):
    config = {"model_type": "bart", "d_model": 16}
    assert load_recipe(extend(folder, "other", "extends: tiny\n", config=config)).model_config == config


def test_variants_are_recipes_of_their_own(folder):
    parent = make_recipe()
    own = "seed: 7, hidden_size: 16, num_beams: 7"
    extend(folder, "grid", f"extends: tiny\nvariants:\n  wide: {{{own}}}\n  slow: {{learning_rate: 0.1}}\n")
    assert load_recipe(folder.parent / "grid") == replace(parent, name="grid")
    wide = replace(
        parent,
        name="wide",
        model_config=parent.model_config | {"hidden_size": 16},
        generation_config=parent.generation_config | {"num_beams": 7},
        training=replace(parent.training, seed=7),
    )
    assert load_recipe(folder.parent / "wide") == load_recipe(folder.parent / "grid" / "wide") == wide
    child = load_recipe(extend(folder, "child", "extends: wide\nlearning_rate: 0.5\n"))
    assert child == replace(wide, name="child", training=replace(wide.training, learning_rate=0.5))
    traced = trace_recipe(folder.parent / "child")
    assert traced["config.json"]["hidden_size"] == (16, "wide")
    assert traced["generation_config.json"]["num_beams"] == (7, "wide")
    assert traced["training.yaml"]["learning_rate"] == (0.5, "child")
    assert traced["training.yaml"]["dataset"] == (parent.training.dataset, "tiny")


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ("[wide]", "`variants` must be"),
        ("{wide: 5}", "`variants` must be"),
        ("{wide: {hiden_size: 1}}", "grid/training.yaml: variant wide: unknown field `hiden_size`"),
        ("{wide: {num_layers: 0}}", "grid/training.yaml: variant wide.*num_layers"),
        ("{wide: {learning_rate: 0}}", "grid/training.yaml: variant wide: `learning_rate`"),
    ],
)
def test_faults_of_variants_are_named_with_their_file(folder, variants, message):
    extend(folder, "grid", f"extends: tiny\nvariants: {variants}\n")
    with pytest.raises(InputError, match=message):
        load_recipe(folder.parent / "wide")


def test_the_parent_may_come_with_the_package(folder):
    parent = load_recipe("residual-lstm-synthetic")
    child = load_recipe(extend(folder, "child", "extends: residual-lstm-synthetic\nseed: 7\n"))
    assert child == replace(parent, name="child", training=replace(parent.training, seed=7))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("extends: tinny", "child/training.yaml: `extends`: unknown recipe `tinny`; did you mean tiny"),
        ("extends: 5", "child/training.yaml: `extends`: unknown recipe `5`"),
        ("extends: child", "child/training.yaml: `extends` goes round in a circle: child <- child"),
        ("extends: grandchild", "grandchild/training.yaml: `extends` goes round .*: child <- grandchild <- child"),
        ("extends: tiny\nlearning_rat: 1", "child/training.yaml: unknown field `learning_rat`"),
        ("extends: faulty", "faulty/training.yaml: unknown field `learning_rat`"),
        ("extends: faulty_model", "faulty_model/config.json: unknown field `hiden_size`"),
    ],
)
def test_faults_of_a_family_are_named_with_their_file(folder, line, message):
    extend(folder, "grandchild", "extends: child\n")
    extend(folder, "faulty", "extends: tiny\nlearning_rat: 1\n")
    extend(folder, "faulty_model", "extends: tiny\n", config={"hiden_size": 1})
    with pytest.raises(InputError, match=message):
        load_recipe(extend(folder, "child", line))


def test_a_name_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_recipe("residual-lstm-synthetic").training.dataset == "synthetic_questions"
    with pytest.raises(InputError, match="unknown recipe `residual-lstm-sintetic`; did you mean .*synthetic"):
        find_recipe("residual-lstm-sintetic")
    make_recipe().save(tmp_path / "residual-lstm-synthetic")
    assert find_recipe("residual-lstm-synthetic") == Path("residual-lstm-synthetic")
    assert load_recipe("residual-lstm-synthetic").model_config == make_recipe().model_config


def test_an_installed_package_has_the_recipes_beside_its_code(folder, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    installed, checkout = FOLDERS
    assert wheel["force-include"][str(checkout.relative_to(root))] == str(installed.relative_to(root))
    monkeypatch.setattr("hf_paraphrase.training.recipe.FOLDERS", (folder.parent, folder / "missing"))
    assert list_recipes() == {"tiny": folder}
    assert find_recipe("tiny") == folder


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
