from __future__ import annotations

import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from datasets import Dataset

import hf_paraphrase.datasets
import hf_paraphrase.training.loop
from hf_paraphrase.cli.app import app, main
from hf_paraphrase.errors import InputError
from hf_paraphrase.evaluation.results import Data, Results
from hf_paraphrase.training.signals import TrainingInterrupted
from tests.models.tiny import tiny_bart, word_tokenizer

SCRIPTS = Path(__file__).parents[2] / "scripts"
CORPUS_SCRIPTS = (
    "compare_paraphrasers",
    "compare_language_models",
    "evaluate_autoencoder",
    "map_embeddings",
    "train_retriever",
)
RECIPE_FILES = {
    "config.json": json.dumps({"model_type": "bart", "d_model": 16}),
    "generation_config.json": json.dumps({"num_beams": 5}),
    "training.yaml": "dataset: synthetic_questions\nlearning_rate: 0.5\n",
}


def run(*args: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main([str(arg) for arg in args])
    return exit_info.value.code


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, text in RECIPE_FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Records what training is asked for, in place of training."""
    calls = []
    monkeypatch.setattr(hf_paraphrase.training.loop, "train", lambda *args, **kwargs: calls.append((args, kwargs)))
    return calls


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_bart().save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return folder


def test_version(capsys: pytest.CaptureFixture) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("hf-paraphrase 0.")


ALL_HELP = """
import contextlib, io, sys
import typer
from hf_paraphrase.cli.app import app, main

def walk(command, path):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, [*path, name])

for path in walk(typer.main.get_command(app), []):
    for option in ("--help", *(["--version"] if not path else [])):
        out = io.StringIO()
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(out):
            main([*path, option])
        assert out.getvalue().strip(), path
        print(*path, option)
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_help_and_version_load_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", ALL_HELP], capture_output=True, text=True, check=True)
    *asked, loaded = done.stdout.splitlines()
    assert {"--version", "--help", "train --help", "datasets preview --help", "push --help"} <= set(asked)
    assert not set(loaded.split()) & {"torch", "transformers", "datasets", "evaluate", "numpy", "pyarrow"}


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "hf_paraphrase", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hf-paraphrase 0.")


def test_help_of_train_lists_the_fields(capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--help") == 0
    out = capsys.readouterr().out
    assert "--recipe" in out
    assert "--learning_rate" in out
    assert "sgd | adagrad | adamw" in out


@pytest.mark.parametrize("command", ["evaluate", "paraphrase", "curves"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture) -> None:
    assert run(command, "--help") == 0
    assert f"\n  hf-paraphrase {command} runs/" in capsys.readouterr().out


def test_train_hands_on_recipe_and_overrides(recipe: Path, tmp_path: Path, trained: list) -> None:
    options = ["--learning-rate", "1e-2", "--optim=sgd", "--d_model", "32", "--num_beams=3", "--max_steps", "-1"]
    assert run("train", "--recipe", recipe, "--output_dir", tmp_path / "out", "--resume", *options) == 0
    ((chosen, output_dir), kwargs) = trained[0]
    assert output_dir == tmp_path / "out"
    assert kwargs == {"data_dir": None, "overwrite": False, "resume": True}
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


@pytest.mark.parametrize("error", [InputError("mend it"), FileExistsError("mend it"), OSError(28, "mend it")])
def test_errors_are_one_line(
    error: Exception, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(hf_paraphrase.training.loop, "train", fail)
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out") == 2
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_message_of_several_lines_is_one(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def fail(*args, **kwargs):
        raise OSError("no such repository\n  log in first\n")

    monkeypatch.setattr(hf_paraphrase.training.loop, "train", fail)
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out") == 2
    assert capsys.readouterr().err == "error: no such repository log in first\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["evaluate"], "Missing argument"),
        (["paraphrase", "m", "--num-beams", "0"], "Invalid value for '--num-beams'"),
        (["datasets", "list", "--all"], "No such option"),
        (["datasets", "preview", "no_such_corpus"], "no_such_corpus"),
        (["trian"], "No such command 'trian'"),
    ],
)
def test_a_command_that_cannot_be_read_is_one_line(
    args: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    assert run(*args) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


@pytest.mark.parametrize("args", [[], ["datasets"]])
def test_without_a_command_there_is_help(args: list[str], capsys: pytest.CaptureFixture) -> None:
    assert run(*args) == 2
    assert "Commands:" in capsys.readouterr().err


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    """As `| head` does: the pipe is closed before anything is written to it."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hf_paraphrase", "--version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_split_that_is_not_there(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    for command in ("evaluate", "evaluate-matcher"):
        assert run(command, checkpoint, "--dataset", "synthetic_questions", "--split", "tset") == 2
        assert "no split" in capsys.readouterr().err


@pytest.mark.parametrize("number", [2, 15])
def test_interrupted_training_exits_as_shells_expect(
    number: int, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def stop(*args, **kwargs):
        raise TrainingInterrupted(number, "saved; go on with --resume")

    monkeypatch.setattr(hf_paraphrase.training.loop, "train", stop)
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out") == 128 + number
    assert capsys.readouterr().err == "saved; go on with --resume\n"


def test_missing_recipe(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("train", "--recipe", tmp_path / "none", "--output-dir", tmp_path / "out") == 2
    assert "error: no recipe" in capsys.readouterr().err


def test_evaluate(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = {}

    def load_dataset(path, **kwargs):
        asked.update(kwargs, path=path)
        return Dataset.from_dict({"source": ["how do i cook ?"] * 3, "references": [["can you cook ?"]] * 3})

    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", load_dataset)
    options = ["--dataset-kwargs", "max_words=15", "--dataset-kwargs", "name_of=it", "--max-samples", "2"]
    options += [
        "--num-beams",
        "1",
        "--num-beams",
        "2",
        "--output-dir",
        tmp_path / "evaluation",
        "--max_new_tokens",
        "4",
    ]
    assert run("evaluate", checkpoint, "--dataset", "mscoco", "--data-dir", tmp_path, *options) == 0
    assert asked == {
        "path": "mscoco",
        "name": None,
        "data_dir": tmp_path,
        "split": "test",
        "max_words": 15,
        "name_of": "it",
    }
    results = Results.load(tmp_path / "evaluation" / "results-test.json")
    assert [entry.decoding.generate_kwargs["max_new_tokens"] for entry in results.of("model")] == [4, 4]
    assert results.data == Data("mscoco", None, {"max_words": 15, "name_of": "it"}, 2, None, "test", 2)
    table = capsys.readouterr().out
    assert "beam 1" in table
    assert "the source, copied" in table


CORPUS_OPTIONS = ["dataset_name", "data_dir", "data_files", "dataset_kwargs"]


@pytest.mark.parametrize(
    "name", ["train", "evaluate", "evaluate-matcher", "datasets preview", "explain-match pairs", *CORPUS_SCRIPTS]
)
def test_a_corpus_is_named_alike_everywhere(name: str) -> None:
    if name in CORPUS_SCRIPTS:
        command = typer.Typer()
        command.command()(runpy.run_path(str(SCRIPTS / f"{name}.py"))["main"])
        command = typer.main.get_command(command)
    else:
        command = typer.main.get_command(app)
        for part in name.split():
            command = command.commands[part]
    parameters = {parameter.name: parameter for parameter in command.params}
    found = {option: (*parameters[option].opts, parameters[option].metavar) for option in CORPUS_OPTIONS}
    assert found == {
        "dataset_name": ("--dataset-name", None),
        "data_dir": ("--data-dir", None),
        "data_files": ("--data-files", "[SPLIT=]FILE"),
        "dataset_kwargs": ("--dataset-kwargs", "KEY=VALUE"),
    }
    assert all(parameters[option].multiple for option in ("data_files", "dataset_kwargs"))
    assert name == "datasets preview" or parameters["dataset"].opts == ["--dataset"]


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


def test_files_with_and_without_a_split(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    files = ["--data-files", "train=a.csv", "--data-files", "b.csv"]
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out", "--dataset", "pairs", *files) == 2
    assert capsys.readouterr().err.startswith("error: --data-files: give each file its split, or none")


def test_evaluate_knows_what_a_run_was_trained_on(
    checkpoint: Path, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load_dataset(path, **kwargs):
        asked.append((path, kwargs))
        raise InputError("enough")

    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", load_dataset)
    folder = tmp_path / "run"
    shutil.copytree(checkpoint, folder)
    shutil.copytree(recipe, folder / "recipe")
    with (folder / "recipe" / "training.yaml").open("a") as file:
        file.write("dataset_name: plain\ndata_dir: here\ndataset_kwargs: {seed: 3, size: 9}\n")
    assert run("evaluate", folder, "--dataset-kwargs", "seed=4") == 2
    plain = {"name": "plain", "data_dir": "here", "split": "test", "seed": 4, "size": 9}
    assert asked == [("synthetic_questions", plain)]


def test_evaluate_refuses_bad_input(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("evaluate", checkpoint, "--dataset", "mscoco", "--dataset-kwargs", "max_words") == 2
    assert capsys.readouterr().err == "error: --dataset-kwargs takes KEY=VALUE, got 'max_words'\n"
    assert run("evaluate", checkpoint) == 2
    assert capsys.readouterr().err.startswith("error: --dataset is missing")
    assert run("evaluate", checkpoint, "--dataset", "no_such_corpus") == 2
    assert "no_such_corpus" in capsys.readouterr().err


def test_paraphrase_arguments(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "how do i cook ?", "can you make bread ?", "--max-new-tokens", "4") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run("paraphrase", checkpoint, "how do i cook ?", "bread", "--num-return-sequences", "3") == 0
    blocks = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == ["how do i cook ?", "bread"]
    assert [len(block.split("\n")) for block in blocks] == [4, 4]


def test_paraphrase_in_other_ways(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    outputs = set()
    for options in (
        [],
        ["--decoding", "dips", "--fidelity", "0"],
        ["--decoding", "diverse_beam", "--diversity-penalty", 9],
    ):
        options = ["--max-new-tokens", "5", "--num-return-sequences", "4", *options]
        assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 3
    options = ["--max-new-tokens", "5", "--decoding", "dips", "--fidelity", "0", "--allow-source"]
    assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decoding", "best"], "--decoding must be one of beam, diverse_beam, dips, not best"),
        (["--fidelity", "0.3"], "--fidelity is an option of --decoding dips"),
        (["--exclude-source"], "--exclude-source is an option of --decoding diverse_beam and dips"),
        (
            ["--decoding", "dips", "--num-beam-groups", "2"],
            "--num-beam-groups is an option of --decoding diverse_beam",
        ),
        (
            ["--decoding", "diverse_beam", "--num-beams", "4", "--num-beam-groups", "3"],
            "--num-beam-groups 3 does not divide --num-beams 4",
        ),
    ],
)
def test_options_of_another_decoding(
    options: list[str], message: str, checkpoint: Path, capsys: pytest.CaptureFixture
) -> None:
    for command in (["paraphrase", checkpoint, "a"], ["evaluate", checkpoint]):
        assert run(*command, *options) == 2
        assert capsys.readouterr().err.endswith(f"error: {message}\n")


def test_paraphrase_lines_as_json(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("how do i cook ?\nbread\n"))
    assert (
        run("paraphrase", checkpoint, "--json", "--do-sample", "--num-return-sequences", "2", "--temperature", "2")
        == 0
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["source"] for row in rows] == ["how do i cook ?", "bread"]
    assert [len(row["paraphrases"]) for row in rows] == [2, 2]


def test_paraphrase_refuses_bad_input(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "a", "--num-beams", "2", "--num-return-sequences", "3") == 2
    assert capsys.readouterr().err.endswith("error: --num-beams 2 cannot return 3 paraphrases; widen it\n")
    assert run("paraphrase", tmp_path / "nowhere", "a") == 2
    assert "is neither a checkpoint folder nor a Hub repository" in capsys.readouterr().err


def test_curves_of_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("curves", tmp_path, "--output", tmp_path / "curves.png") == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_curves_of_a_fine_tuning(tmp_path: Path) -> None:
    entries = [{"step": step, "epoch": step / 10, "eval_loss": 2.0, "eval_general_loss": 2.5} for step in (5, 10)]
    (tmp_path / "log_history.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert run("curves", tmp_path, "--fine-tuning", "--output", tmp_path / "curves.png") == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [[], ["--allow-own-pair"]])
def test_own_pairs_are_allowed_on_request_alone(
    options: list[str], checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def evaluate(*args: object, allow_own_pair: bool, **kwargs: object) -> None:
        asked.append(allow_own_pair)
        raise InputError("enough")

    monkeypatch.setattr("hf_paraphrase.evaluation.paraphrases.evaluate_paraphraser", evaluate)
    assert run("evaluate", checkpoint, "--dataset", "synthetic_questions", "--max-samples", "2", *options) == 2
    assert asked == [bool(options)]
