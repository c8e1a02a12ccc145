"""A little of every attack; `python -m tests.reliability` does as much as it is told."""

from __future__ import annotations

import sys

import pytest

from .__main__ import main
from .attacks import ATTACKS
from .calls import call_from_threads, call_hostile
from .checkpoints import open_hostile_checkpoints
from .connections import attack_connections
from .corpora import fuzz_corpora
from .damages import open_damaged_checkpoints
from .disk import fill_disk
from .kills import kill
from .panics import panic_in_workers
from .pushes import push_through_faults
from .stages import kill_at_stages
from .trials import Trials

pytestmark = pytest.mark.reliability


def check(trials: Trials, count: int) -> None:
    if trials.skipped:
        pytest.skip(trials.skipped)
    assert trials.tried == count
    assert not trials.failed, "\n".join(trials.failed)


def test_fuzzed_corpora():
    check(fuzz_corpora(30), 30)


def test_hostile_calls():
    check(call_hostile(27), 27)


def test_calls_from_threads():
    check(call_from_threads(14), 14)


def test_pushes_through_faults():
    check(push_through_faults(3), 3)


def test_panics_in_workers():
    check(panic_in_workers(2), 2)


def test_hostile_connections():
    check(attack_connections(3), 3)


def test_kills_at_stages():
    check(kill_at_stages(2), 2)


def test_hostile_checkpoints():
    check(open_hostile_checkpoints(9), 9)


def test_damaged_checkpoints():
    check(open_damaged_checkpoints(18), 18)


def test_full_disk():
    check(fill_disk(2), 2)


def test_a_killed_training_resumes():
    check(kill("kill", 1, 1, first_step=6), 1)


@pytest.mark.slow
def test_a_killed_training_of_two_processes_resumes():
    check(kill("kill", 2, 1, first_step=6), 1)


def test_failures_are_counted():
    trials = Trials("x")
    with trials.trial("allowed", (ValueError,)):
        raise ValueError
    with trials.trial("not allowed", (KeyError,)):
        raise ValueError("why")
    with trials.trial("slow", seconds=-1):
        pass
    assert trials.tried == 3 and len(trials.failed) == 2
    assert trials.failed[0].startswith("not allowed: ValueError: why (test_reliability.py:")
    assert trials.failed[1].startswith("slow: took")


def test_the_table(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests.reliability", "--files", "3"])
    monkeypatch.delenv("HF_HOME", raising=False)
    assert main() == 0
    assert capsys.readouterr().out == "| what | tried | failed |\n|---|--:|--:|\n| fuzzed corpus files | 3 | 0 |\n"


def test_help_names_every_attack(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests.reliability", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    said = capsys.readouterr().out
    assert all(f"--{name} N" in said for name in ATTACKS)
