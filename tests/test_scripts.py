"""The shell scripts, with a Python that only notes what it is asked, and the thin Python ones."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FAKE_PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1 $2" in
    "-c "*) exit ${TOO_OLD:-0} ;;
    "--version ") echo Python 3.x ;;
    "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
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
    assert [call.split()[-1] for call in installs] == ["torch", ".[dev]"]
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


@pytest.mark.parametrize("script", sorted(path.name for path in ROOT.glob("scripts/*.sh")) + ["../.ci/run"])
def test_shell_syntax(script: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / "scripts" / script)], check=True)


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
        *("train.py", "evaluate.py", "compare.py", "push_to_hub.py"),
        *("benchmark.py", "benchmarks"),
        *("quickstart.sh", "test.sh", "environment.sh", "constraints.txt"),
    }
