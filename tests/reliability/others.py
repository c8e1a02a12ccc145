"""The tests of this folder that count no trials themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .trials import Trials

__all__ = ["run_tests"]

# Whose trials have rows of their own.
COUNTED = "test_reliability.py"


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


def run_tests(count: int, seed: int = 0) -> Trials:
    """Run each of them once."""
    trials = Trials("other tests: checkpoints, locks")
    files = sorted(set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__).with_name(COUNTED)})
    if not files:
        trials.skipped = "none there"
    else:
        pytest.main(["-q", "--no-header", "-p", "no:terminal", *map(str, files)], plugins=[Counter(trials)])
    return trials
