from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from hf_paraphrase.cli.train import TASK_RECIPES
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.recipe import load_recipe
from hf_paraphrase.training.tasks import TASKS

from .runner import run


def listed(out: str) -> set[str]:
    """The fields that a help text has lines for."""
    return set(re.findall(r"^  --(\w+) ", out.partition("Fields of training.yaml")[2], re.MULTILINE))


# Those that are options of the command.
OPTIONS = {"dataset", "dataset_name", "dataset_kwargs", "data_dir"}


def test_help_names_the_tasks_and_what_they_share(capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--help") == 0
    out = capsys.readouterr().out
    assert "--recipe" in out
    assert "sgd | adagrad | adamw" in out
    assert listed(out) == {field.name for field in fields(TrainingConfig)} - OPTIONS
    assert set(TASK_RECIPES) == set(TASKS)
    for task, recipe in TASK_RECIPES.items():
        words = " ".join(out.split()).replace("hotel- reviews", "hotel-reviews")
        assert f"{task} hf-paraphrase train --recipe {recipe} --help" in words


@pytest.mark.parametrize("task", TASKS)
def test_help_shows_the_fields_of_the_recipes_task(task: str, capsys: pytest.CaptureFixture) -> None:
    training = load_recipe(TASK_RECIPES[task]).training
    assert training.task == task
    for args in (["--recipe", TASK_RECIPES[task], "--help"], ["--help", f"--recipe={TASK_RECIPES[task]}"]):
        assert run("train", *args) == 0
        out = capsys.readouterr().out
        assert listed(out) == {field.name for field in fields(TASKS[task].config_class)} - OPTIONS
        assert f"default: {json.dumps(training.learning_rate)}]" in out


def test_help_of_a_recipe_that_is_not_there(capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--help", "--recipe", "residual-lstm-synthetik") == 2
    assert "did you mean residual-lstm-synthetic" in capsys.readouterr().err


def test_train_hands_on_recipe_and_overrides(recipe: Path, tmp_path: Path, trained: list) -> None:
    options = ["--learning-rate", "1e-2", "--optim=sgd", "--d_model", "32", "--num_beams=3", "--max_steps", "-1"]
    assert run("train", "--recipe", recipe, "--output_dir", tmp_path / "out", "--resume", *options) == 0
    ((chosen, output_dir), kwargs) = trained[0]
    assert output_dir == tmp_path / "out"
    assert kwargs == {"data_dir": None, "overwrite": False, "resume": True, "trust_remote_code": False}
    assert (chosen.training.learning_rate, chosen.training.optim, chosen.training.max_steps) == (0.01, "sgd", -1)
    assert chosen.model_config["d_model"] == 32
    assert chosen.generation_config["num_beams"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learning_rte", "1"], "unknown field `learning_rte`.*learning_rate"),
        (["--learning_rate", "fast"], "learning_rate.*fast"),
        (["--learning_rate"], "--learning_rate needs a value"),
        (["--lowercase", "--seed", "1"], "--lowercase needs a value"),
        (["stray"], "unexpected argument 'stray'"),
    ],
)
def test_train_refuses_bad_overrides(
    options: list[str], message: str, recipe: Path, tmp_path: Path, trained: list, capsys: pytest.CaptureFixture
) -> None:
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert re.search(message, error)
    assert not trained


def test_missing_recipe(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--recipe", tmp_path / "none", "--output-dir", tmp_path / "out") == 2
    assert "error: no recipe" in capsys.readouterr().err


def test_train_takes_a_corpus_as_evaluate_does(recipe: Path, tmp_path: Path, trained: list) -> None:
    with (recipe / "training.yaml").open("a") as file:
        file.write("dataset_name: default\ndata_dir: here\ndataset_kwargs: {seed: 3, size: 9}\n")
    command = ["train", "--recipe", recipe, "--output-dir", tmp_path / "out"]
    assert run(*command, "--dataset-kwargs", "seed=4", "--data-dir", tmp_path) == 0
    files = ["--data-files", "train=a.csv", "--data-files", "train=b.csv", "--data-files", "test=c.csv"]
    assert run(*command, "--dataset", "pairs", *files, "--dataset_kwargs", "source_column=q") == 0
    assert run(*command, "--dataset", "pairs", "--data-files", "a=b.csv", "--dataset-name", "default") == 0
    found = []
    for (chosen, _), kwargs in trained:
        training = chosen.training
        fields = (training.dataset, training.dataset_name, training.data_dir, training.dataset_kwargs)
        found.append((*fields, kwargs["data_dir"]))
    by_split = {"train": ["a.csv", "b.csv"], "test": ["c.csv"]}
    assert found == [
        ("synthetic_questions", "default", "here", {"seed": 4, "size": 9}, tmp_path),
        ("pairs", None, None, {"source_column": "q", "data_files": by_split}, None),
        ("pairs", "default", None, {"data_files": ["a=b.csv"]}, None),
    ]


MIXTURE = "[{dataset: mscoco, share: 3}, {dataset: groups, dataset_kwargs: {data_files: a.tsv}, share: 1}]"


def test_a_mixture_replaces_the_corpus_of_a_recipe_and_the_other_way_round(
    recipe: Path, tmp_path: Path, trained: list
) -> None:
    with (recipe / "training.yaml").open("a") as file:
        file.write("dataset_name: default\ndataset_kwargs: {seed: 3}\n")
    command = ["train", "--output-dir", tmp_path / "out", "--recipe"]
    assert run(*command, recipe, "--mixture", MIXTURE, "--data-dir", tmp_path) == 0
    ((mixed, _), kwargs) = trained[0]
    training = mixed.training
    assert (training.dataset, training.dataset_name, training.dataset_kwargs) == (None, None, {})
    assert [(corpus.dataset, corpus.share) for corpus in training.corpora] == [("mscoco", 3), ("groups", 1)]
    assert kwargs["data_dir"] == tmp_path
    mixed.save(tmp_path / "mixed")
    assert run(*command, tmp_path / "mixed", "--dataset", "pairs", "--data-files", "a.csv") == 0
    training = trained[1][0][0].training
    assert (training.dataset, training.dataset_kwargs, training.mixture) == ("pairs", {"data_files": ["a.csv"]}, [])


def test_a_recipe_that_extends_another_may_mix(recipe: Path, tmp_path: Path, trained: list) -> None:
    child = tmp_path / "child"
    child.mkdir()
    (child / "training.yaml").write_text(f"extends: {recipe.name}\nmixture: {MIXTURE}\n")
    if recipe.parent != tmp_path:
        child = child.rename(recipe.parent / "child")
    assert run("train", "--recipe", child, "--output-dir", tmp_path / "out") == 0
    training = trained[0][0][0].training
    assert (training.dataset, len(training.mixture)) == (None, 2)


def test_options_of_one_corpus_do_not_fit_a_mixture(
    recipe: Path, tmp_path: Path, trained: list, capsys: pytest.CaptureFixture
) -> None:
    command = ["train", "--recipe", recipe, "--output-dir", tmp_path / "out", "--mixture", MIXTURE]
    assert run(*command, "--dataset-kwargs", "seed=1") == 2
    assert "this recipe has a mixture: name one with --dataset" in capsys.readouterr().err
    assert run(*command[:-1], "[{dataset: mscoco, part: 1}]") == 2
    assert "`mixture`, entry 1: unknown field `part`" in capsys.readouterr().err
    assert not trained


def test_a_model_of_a_mixture_is_evaluated_on_a_named_corpus(
    recipe: Path, tmp_path: Path, trained: list, capsys: pytest.CaptureFixture
) -> None:
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out", "--mixture", MIXTURE) == 0
    trained[0][0][0].save(tmp_path / "run" / "recipe")
    assert run("evaluate", tmp_path / "run") == 2
    assert "was trained on a mixture (mscoco, groups)" in capsys.readouterr().err


def test_help_has_the_mixture_of_a_recipe(capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--recipe", "transformer-open", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--mixture" in said and "--pairs_per_group" in said and "MPL-2.0" in said


def test_files_with_and_without_a_split(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    files = ["--data-files", "train=a.csv", "--data-files", "b.csv"]
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out", "--dataset", "pairs", *files) == 2
    assert capsys.readouterr().err.startswith("error: --data-files: give each file its split, or none")


def test_curves_of_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("explain", "curves", tmp_path, "--output", tmp_path / "curves.png") == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_curves_of_a_fine_tuning(tmp_path: Path) -> None:
    entries = [{"step": step, "epoch": step / 10, "eval_loss": 2.0, "eval_general_loss": 2.5} for step in (5, 10)]
    (tmp_path / "log_history.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert run("explain", "curves", tmp_path, "--fine-tuning", "--output", tmp_path / "curves.png") == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
