"""Attacks that have their tests elsewhere, which are counted here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .trials import Trials

TESTS = Path(__file__).resolve().parents[1]


class Counter:
    """A plugin of pytest that counts tests.

    Args:
        trials: Where they are counted.
    """

    def __init__(self, trials: Trials):
        self.trials = trials

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and not report.skipped:
            self.trials.tried += 1
        if report.failed:
            self.trials.failed.append(f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1]:.200}")


def run_twice_in_one_folder(count: int, seed: int = 0) -> Trials:
    """Run the tests of two trainings in one folder, once each."""
    return _run("two runs in one folder", ["training/test_resume.py"], "two_runs or lock")


def _run(name: str, places: list[str], chosen: str = "") -> Trials:
    trials = Trials(name)
    paths = [str(TESTS / place) for place in places if (TESTS / place).exists()]
    if paths:
        pytest.main(["-p", "no:terminal", "-k", chosen, *paths], plugins=[Counter(trials)])
    if not trials.tried and not trials.failed:
        trials.skipped = "no tests there"
    return trials
