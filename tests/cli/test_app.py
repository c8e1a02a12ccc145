from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import hf_paraphrase.training.loop
from hf_paraphrase.cli.app import main
from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.training.recipe import list_recipes

from .runner import find_commands, run

ROOT = Path(__file__).parents[2]


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


COMMANDS = find_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(name: str, capsys: pytest.CaptureFixture) -> None:
    assert run(*name.split(), "--help") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: hf-paraphrase {name} ")
    assert f"\n  hf-paraphrase {name}" in out


def find_examples() -> list[list[str]]:
    """The words of every command that help and the living documentation show, but for the program's name."""
    texts = [command.help.replace("\b\n", "") for command in COMMANDS.values()]
    pages = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "model_cards/PAPERS.md"))
    for page in (*pages, *sorted(ROOT.glob("scripts/docs/*.md"))):
        texts += re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "scripts").glob("*.py")]
    lines = "\n".join(texts).replace("\\\n", " ").splitlines()
    parts = (part.strip() for line in lines for part in line.split("  #")[0].split(" | "))
    launched = (re.sub(r"^accelerate launch .*scripts/(\w+)\.py", r"hf-paraphrase \1", part) for part in parts)
    examples = (re.split(r" [<>] ", part)[0] for part in launched if part.startswith("hf-paraphrase "))
    return [shlex.split(example)[1:] for example in examples]


def test_every_example_can_be_read() -> None:
    shown = set()
    for words in find_examples():
        (name,) = [name for name in COMMANDS if words[: len(name.split())] == name.split()] or [None]
        if name is None:
            assert words[0] in ("--help", "--version"), words
            continue
        shown.add(name)
        rest = words[len(name.split()) :]
        if "--help" not in rest:
            context = COMMANDS[name].make_context(name, rest, help_option_names=["--help"])
            recipe = context.params.get("recipe")
            assert recipe is None or recipe in list_recipes(), words
    assert shown == set(COMMANDS)


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "hf_paraphrase", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hf-paraphrase 0.")


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


# What each command is asked for where there is no such model, file or corpus; `HERE` is a file of two lines.
MISSING = {
    "recipes": ["no/such"],
    "train": ["--recipe", "no/such", "--output-dir", "out"],
    "evaluate": ["none", "--dataset", "synthetic_questions", "--max-samples", "2"],
    "score": ["--predictions", "none.jsonl"],
    "compare": ["a=none", "--dataset", "synthetic_questions", "--metrics", "bleu", "--output-dir", "out"],
    "reproduce": ["none", "--output-dir", "out"],
    "paraphrase": ["none", "a text"],
    "paraphrase-document": ["--model", "none", "HERE", "--output", "out.md"],
    "augment": ["none.csv", "--model", "none", "--column", "text", "--output", "out"],
    "distill": ["none.csv", "--teacher", "none", "--column", "text", "--recipe", "no/such", "--output-dir", "out"],
    "mine": ["none.txt", "--output", "out"],
    "serve": ["none", "--port", "0"],
    "push": ["none", "--dry-run"],
    "demo": ["none"],
    "space": ["none", "--output", "out"],
    "info": ["none"],
    "datasets info": ["none"],
    "datasets preview": ["msrp", "--data-dir", "none"],
    "retriever train": ["--data-dir", "none", "--output-dir", "out"],
    "rating make": ["--system", "a=none.jsonl", "--output-dir", "out"],
    "rating read": ["none.json", "none.csv"],
    "explain curves": ["none", "--output", "curves.png"],
    "explain edit": ["none", "a text", "--output", "edit.html"],
    "explain match heatmap": ["none", "--text", "a", "--text-pair", "b", "--output", "unit.png"],
    "explain match pairs": ["none", "--dataset", "synthetic_questions"],
    "explain documents": ["none", "HERE"],
    "explain map": ["none", "--dataset", "synthetic_questions", "--output-dir", "out"],
}


def test_every_command_that_reads_something_may_miss_it() -> None:
    assert COMMANDS.keys() - MISSING.keys() == {"env", "datasets list"}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_told_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HERE").write_text("one line\nanother\n")
    assert run(*name.split(), *MISSING[name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert re.search("none|no/such", error)


@pytest.mark.parametrize("options", [["--num-neighbors", "2"], ["--decoding", "sample", "--temperature", "-1"]])
def test_what_models_and_generate_refuse_is_told_too(
    options: list[str], checkpoint: Path, capsys: pytest.CaptureFixture
) -> None:
    assert run("paraphrase", checkpoint, "a cat", *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: ") and options[-2].strip("-").replace("-", "_") in last


def test_a_mistake_of_ours_is_not_taken_for_the_users(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args, **kwargs):
        raise ValueError("a bug")

    monkeypatch.setattr(hf_paraphrase.training.loop, "train", fail)
    with pytest.raises(ValueError, match="a bug"):
        main(["train", "--recipe", str(recipe), "--output-dir", str(tmp_path / "out")])


@pytest.mark.parametrize("args", [[], ["datasets"], ["rating"], ["retriever"], ["explain"], ["explain", "match"]])
def test_without_a_command_there_is_help(args: list[str], capsys: pytest.CaptureFixture) -> None:
    assert run(*args) == 2
    assert ("Commands:" if args else "Use a model:") in capsys.readouterr().err


def test_help_groups_the_commands_each_in_one_whole_line(capsys: pytest.CaptureFixture) -> None:
    assert run("--help") == 0
    usage, _, lines = capsys.readouterr().out.partition("Use a model:")
    listed = dict(re.findall(r"^  (\S+)  +(\S.*)$", lines, re.MULTILINE))
    assert listed.keys() == {words.split()[0] for words in COMMANDS} and len(listed) == 21
    assert all(line.endswith(".") and len(line) <= 57 for line in listed.values())
    examples = re.findall(r"^  hf-paraphrase (\S+)", usage, re.MULTILINE)
    known = list(listed)  # in the order of the help
    assert examples == sorted(examples, key=known.index) and examples[0] == known[0] == "paraphrase"


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    """As `| head` does: the pipe is closed before anything is written to it."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hf_paraphrase", "--version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("number", [2, 15])
def test_interrupted_training_exits_as_shells_expect(
    number: int, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def stop(*args, **kwargs):
        raise TrainingInterrupted(number, "saved; go on with --resume")

    monkeypatch.setattr(hf_paraphrase.training.loop, "train", stop)
    assert run("train", "--recipe", recipe, "--output-dir", tmp_path / "out") == 128 + number
    assert capsys.readouterr().err == "saved; go on with --resume\n"
