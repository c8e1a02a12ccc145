"""What is released: the package as others install it, and the versions that it is tested on."""

from __future__ import annotations

import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cli.runner import find_commands

ROOT = Path(__file__).parents[1]
SMOKE = runpy.run_path(str(ROOT / ".ci" / "smoke.py"))
LOWEST = runpy.run_path(str(ROOT / ".ci" / "lowest_versions.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_smoke_test_runs_every_command() -> None:
    commands = find_commands()
    assert {name for name, _, _ in SMOKE["STORY"]} == set(commands) == SMOKE["find_commands"]()
    for name, args, _ in SMOKE["STORY"]:
        commands[name].make_context(name, list(args), help_option_names=["--help"])


def test_every_extra_that_a_command_asks_for_exists() -> None:
    asked = {lack for _, _, lack in SMOKE["STORY"] if lack and lack.endswith("]")}
    assert asked and {one.partition("[")[2].rstrip("]") for one in asked} <= PROJECT["optional-dependencies"].keys()


@pytest.mark.slow
def test_wheel_and_sdist_run_in_an_empty_environment() -> None:
    """Downloads what the package requires, or takes it from where pip is told to look."""
    subprocess.run(["bash", ".ci/package"], cwd=ROOT, check=True, env=None)


def test_lowest_versions_are_those_of_the_requirements() -> None:
    read = LOWEST["read_lowest"]
    assert read(["a>=1.2", "b-c[d,e]>=3", "hf-paraphrase[x]"]) == {"a": "1.2", "b-c": "3"}
    for wrong in (["a"], ["a==1"], ["a<2"]):
        with pytest.raises(SystemExit, match="no lowest version of a"):
            read(wrong)
    with pytest.raises(SystemExit, match="two lowest versions of a"):
        read(["a>=1", "a>=2"])


def test_every_requirement_has_one_lowest_version() -> None:
    done = subprocess.run(
        [sys.executable, ".ci/lowest_versions.py", "torch==9"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pinned = dict(line.split("==") for line in done.stdout.splitlines())
    assert pinned["torch"] == "9" and len(pinned) > 30
    assert f"transformers>={pinned['transformers']}" in PROJECT["dependencies"]


def test_the_workflow_tests_every_python_and_the_lowest_versions() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    pythons = jobs["tests"]["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13"]
    assert pythons[0] == PROJECT["requires-python"].removeprefix(">=")
    assert {f"Programming Language :: Python :: {python}" for python in pythons} <= set(PROJECT["classifiers"])
    commands = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {"bash .ci/run", "bash .ci/lowest", "bash .ci/package", "bash scripts/docs.sh"} <= commands
    for command in commands:
        if command.startswith("bash "):
            assert (ROOT / command.split()[1]).is_file()
