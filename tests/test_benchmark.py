from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture(autouse=True)
def scripts_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)


def test_every_part_names_a_function() -> None:
    for module, function in import_module("benchmark").PARTS.values():
        assert callable(getattr(import_module(f"benchmarks.{module}"), function))


def test_a_part_gives_rows_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = import_module("benchmarks.metrics")
    make_captions = metrics.make_captions
    monkeypatch.setattr(metrics, "make_captions", lambda rows: make_captions(20))
    rows = metrics.benchmark_metrics("cpu", repeats=1)
    assert len(rows) == 8
    assert all(float(ratio.replace(",", "")) > 0 for *_, ratio in rows)
