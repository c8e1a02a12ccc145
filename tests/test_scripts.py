"""The shell scripts, with a Python that only notes what it is asked, and the thin Python ones."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.runner import find_commands

ROOT = Path(__file__).parents[1]

FAKE_PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1 $2" in
    "-c "*) exit ${TOO_OLD:-0} ;;
    "--version ") echo Python 3.x ;;
    "-m venv") for venv; do :; done; mkdir -p "$venv/bin" && cp "$0" "$venv/bin/python" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("environment.sh", "test.sh", "constraints.txt"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    python = tmp_path / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    return folder


def run_tests_script(checkout: Path, *args: str, **env: str) -> tuple[subprocess.CompletedProcess, list[str]]:
    """What `scripts/test.sh` printed, and the calls of Python that it made, from another working directory."""
    calls = checkout.parent / "calls"
    calls.write_text("")
    done = subprocess.run(
        ["bash", str(checkout / "scripts" / "test.sh"), *args],
        cwd=checkout.parent,
        env={"PATH": os.environ["PATH"], "PYTHON": str(checkout.parent / "python"), "CALLS": str(calls), **env},
        capture_output=True,
        text=True,
    )
    return done, calls.read_text().splitlines()


def test_environment_is_made_once(checkout: Path) -> None:
    done, calls = run_tests_script(checkout, "-k", "bleu")
    assert done.returncode == 0, done.stderr
    assert "-m venv --clear .venv" in calls
    installs = [call for call in calls if " install " in call]
    assert [call.split()[-1] for call in installs] == ["torch", ".[dev]"]  # the quickstart makes do with less
    assert all("--constraint scripts/constraints.txt" in call for call in installs)
    assert calls[-1] == "-m pytest -n 2 -k bleu"
    assert run_tests_script(checkout)[1] == ["-m pytest -n 2"]


def test_environment_follows_the_requirements(checkout: Path) -> None:
    run_tests_script(checkout)
    with (checkout / "scripts" / "constraints.txt").open("a") as file:
        file.write("tqdm==1\n")
    calls = run_tests_script(checkout)[1]
    assert "-m venv --clear .venv" not in calls
    assert len([call for call in calls if " install " in call]) == 2


def test_an_environment_half_made_is_made_again(checkout: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    done, calls = run_tests_script(checkout)
    assert done.returncode == 0, done.stderr
    assert "-m venv --clear .venv" in calls


@pytest.mark.parametrize(
    ("env", "message"),
    [({"TOO_OLD": "1"}, "needs Python 3.11 or newer"), ({"PYTHON": "no-such-python"}, "no-such-python not found")],
)
def test_a_python_that_cannot_do(checkout: Path, env: dict[str, str], message: str) -> None:
    done, calls = run_tests_script(checkout, **env)
    assert done.returncode == 1
    assert message in done.stderr
    assert not any("venv" in call for call in calls)


@pytest.mark.parametrize(
    "script",
    sorted(path.name for path in ROOT.glob("scripts/*.sh"))
    + [f"../.ci/{name}" for name in ("run", "lowest", "package")],
)
def test_shell_syntax(script: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / "scripts" / script)], check=True)


def test_lowest_versions_and_newer_pythons(checkout: Path) -> None:
    """With Pythons that only note what they are asked; there is no 3.12."""
    (checkout / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "lowest", checkout / ".ci")
    folder, calls = checkout.parent / "bin", checkout.parent / "calls"
    folder.mkdir()
    for name, text in {"3.11": FAKE_PYTHON, "3.12": "#!/bin/sh\nexit 127\n", "3.13": FAKE_PYTHON}.items():
        (folder / f"python{name}").write_text(text)
        (folder / f"python{name}").chmod(0o755)
    done = subprocess.run(
        ["bash", str(checkout / ".ci" / "lowest"), "torch==9", "--", "-k", "fset"],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    asked = calls.read_text().splitlines()
    assert asked[0] == ".ci/lowest_versions.py torch==9"
    installs = [call.split("--constraint ")[1] for call in asked if " install " in call]
    assert installs == [
        *(".venvs/lowest.txt torch", ".venvs/lowest.txt --editable .[test]"),
        *("scripts/constraints.txt torch", "scripts/constraints.txt --editable .[test]"),
    ]
    assert [call for call in asked if "pytest" in call] == ["-m pytest -k fset"] * 2
    assert "no python3.12 here" in done.stdout


FAKE_COMMAND = """#!/bin/sh
for word in "$@"; do printf '[%s] ' "$word" >> "$CALLS.commands"; done
echo >> "$CALLS.commands"
case "$1" in
    train)
        for recipe in runs/*.recipe; do
            mkdir -p "${recipe%.recipe}"
            echo {} > "${recipe%.recipe}/training_summary.json"
        done
        ;;
esac
"""


@pytest.fixture
def quickstart(checkout: Path):
    """Runs `scripts/quickstart.sh` with a command that only notes what it is asked; what was asked, and the output."""
    shutil.copy(ROOT / "scripts" / "quickstart.sh", checkout / "scripts")
    shutil.copytree(ROOT / "hub_configs" / "residual-lstm-mscoco-small", checkout / "hub_configs" / "one")
    (checkout / ".venv" / "bin").mkdir(parents=True)
    command = checkout / ".venv" / "bin" / "hf-paraphrase"
    command.write_text(FAKE_COMMAND)
    command.chmod(0o755)

    def start(*args: str) -> tuple[subprocess.CompletedProcess, list[list[str]]]:
        calls = checkout.parent / "calls"
        noted = Path(f"{calls}.commands")
        noted.write_text("")
        done = subprocess.run(
            ["bash", str(checkout / "scripts" / "quickstart.sh"), *args],
            cwd=checkout.parent,
            env={"PATH": os.environ["PATH"], "PYTHON": str(checkout.parent / "python"), "CALLS": str(calls)},
            capture_output=True,
            text=True,
        )
        lines = noted.read_text().splitlines()
        return done, [line.strip()[1:-1].split("] [") for line in lines]

    return start


def test_quickstart_paraphrases_at_once(quickstart, checkout: Path) -> None:
    done, (paraphrase,) = quickstart("One dog.")
    assert done.returncode == 0, done.stderr
    assert paraphrase[:3] == ["paraphrase", "-n", "3"] and paraphrase[6:] == ["One dog."]
    assert "Paraphraser()\n" in done.stdout
    # Without the extras, which take longer to install than the package; a training needs them, and they are kept.
    calls = checkout.parent / "calls"
    assert [line.split()[-1] for line in calls.read_text().splitlines() if " install " in line] == ["torch", "."]
    for args, last in ((("--corpus", "synthetic_questions"), ".[dev]"), ((), ".[dev]")):
        quickstart(*args)
        assert [line.split()[-1] for line in calls.read_text().splitlines() if " install " in line][-1] == last


def test_quickstart_says_what_the_built_in_grammar_knows(quickstart) -> None:
    done, (train, evaluate, paraphrase) = quickstart("--corpus", "synthetic_questions")
    assert done.returncode == 0, done.stderr
    assert "only the questions of a small built-in grammar" in done.stdout
    assert " ".join(train) == "train --recipe residual-lstm-synthetic --output-dir runs/quickstart --overwrite"
    assert " ".join(evaluate) == "evaluate runs/quickstart --num-beams 5 --output-dir runs/quickstart/evaluation"
    assert paraphrase[:4] == ["paraphrase", "runs/quickstart", "-n", "3"]
    assert paraphrase[4] == "How can I learn Spanish quickly?"
    assert 'Paraphraser.from_pretrained("runs/quickstart")\n' in done.stdout


def test_quickstart_on_captions(quickstart, tmp_path: Path) -> None:
    done, (train, evaluate, paraphrase) = quickstart("--corpus", "mscoco")
    assert done.returncode == 0, done.stderr
    assert "grammar" not in done.stdout
    # Twenty minutes, of the corpus that is downloaded.
    assert train == [
        *("train", "--recipe", "residual-lstm-mscoco-small", "--max_train_time", "20"),
        *("--output-dir", "runs/quickstart-mscoco", "--overwrite"),
    ]
    assert evaluate[:6] == ["evaluate", "runs/quickstart-mscoco", "--max-samples", "1000", "--sample-seed", "1"]
    assert paraphrase[4] == "A man is riding a wave on a surfboard."
    # A finished training is kept; a folder and sentences are taken over.
    done, (evaluate, paraphrase) = quickstart(
        "--data-dir", str(tmp_path), "--corpus", "mscoco", "One dog.", "Two dogs."
    )
    assert evaluate[2:4] == ["--data-dir", str(tmp_path)]
    assert paraphrase[4:] == ["One dog.", "Two dogs."] and 'paraphraser("One dog."' in done.stdout


@pytest.mark.parametrize("args", [("--corpus", "quora"), ("--corpus",), ("--data-dir",), ("--help",)])
def test_quickstart_refuses_what_it_does_not_know(quickstart, args: tuple[str, ...]) -> None:
    done, calls = quickstart(*args)
    assert (done.returncode, calls) == (2, [])
    assert "there are --corpus synthetic_questions, --corpus mscoco, --data-dir DIR" in done.stderr


def test_quickstart_reads_no_corpus_where_none_is_named(quickstart, tmp_path: Path) -> None:
    done, calls = quickstart("--data-dir", str(tmp_path), "One dog.")
    assert (done.returncode, calls) == (2, [])
    assert "--data-dir goes with --corpus mscoco" in done.stderr


@pytest.mark.parametrize(
    ("script", "command"),
    [("train", "train"), ("evaluate", "evaluate"), ("compare", "compare"), ("push_to_hub", "push")],
)
def test_python_scripts_run_the_command(
    script: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit) as exit_info:
        runpy.run_path(str(ROOT / "scripts" / f"{script}.py"), run_name="__main__")
    assert exit_info.value.code == 0
    assert f"Usage: hf-paraphrase {command}" in capsys.readouterr().out


def test_scripts_hold_what_is_launched_or_set_up() -> None:
    assert {path.name for path in (ROOT / "scripts").iterdir()} - {"__pycache__"} == {
        *(
            "train.py",
            "evaluate.py",
            "compare.py",
            "contrastive_autoencoder.py",
            "import_bergamot.py",
            "judge.py",
            "pack.py",
            "push_to_hub.py",
            "readings.py",
            "screenshots.py",
            "strengths.py",
        ),
        *("benchmark.py", "benchmarks", "judging"),
        *("quickstart.sh", "test.sh", "docs", "docs.sh", "environment.sh", "constraints.txt", "Dockerfile"),
    }


def test_the_image_serves_the_wheel_without_root() -> None:
    lines = (ROOT / "scripts" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    copied = [words.split() for step, words in steps if step == "COPY" and not words.startswith("--from")]
    assert all((ROOT / source).exists() for *sources, _ in copied for source in sources)
    # The first stage has all that the wheel is built from.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"}
    needed |= {*wheel["packages"], *wheel["force-include"]}
    assert needed <= {source for *sources, _ in copied for source in sources}
    assert any("*.whl" in words and "[serve]" in words for step, words in steps if step == "RUN")
    (user,) = [number for number, (step, words) in enumerate(steps) if step == "USER" and words != "root"]
    assert user > max(number for number, (step, _) in enumerate(steps) if step == "RUN")
    program, name, *args = json.loads(steps[-1][1])
    assert (steps[-1][0], program) == ("ENTRYPOINT", "hf-paraphrase")
    context = find_commands()[name].make_context(name, args)
    assert context.params["host"] == "0.0.0.0" and ["EXPOSE", str(context.params["port"])] in steps


def test_the_script_of_the_site_installs_what_builds_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = re.search(r"^prepare_environment '\[(\w+)\]'$", (ROOT / "scripts" / "docs.sh").read_text(), re.MULTILINE)[
        1
    ]
    assert any("mkdocs" in needed for needed in extras["docs"]) and any("docs" in needed for needed in extras[asked])
