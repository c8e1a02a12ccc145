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


def test_the_parts_of_the_retriever(monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval = import_module("benchmarks.retrieval")
    for name, value in {"VECTORS": 300, "QUERIES": 10, "BLOCK": 100, "SAMPLE": 200}.items():
        monkeypatch.setattr(retrieval, name, value)
    corpus = retrieval.load_dataset("synthetic_questions", train_size=250, split="train")
    monkeypatch.setattr(retrieval, "load_dataset", lambda *args, split: corpus)
    assert len(retrieval.benchmark_neighbors("cpu", repeats=1)) == 2
    rows = retrieval.benchmark_retrieval("cpu", repeats=1)
    # So few vectors are all compared.
    assert [ratio for name, *_, ratio in rows if "recall" in name] == ["1.000", "1.000"]


def test_the_part_of_the_augmentation(monkeypatch: pytest.MonkeyPatch) -> None:
    augmentation = import_module("benchmarks.augmentation")
    sizes = augmentation.SIZES | {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    for name, value in {"ROWS": 6, "TASKS": 2, "WORDS": 30, "SIZES": sizes}.items():
        monkeypatch.setattr(augmentation, name, value)
    rows = list(augmentation.benchmark_augment("cpu", repeats=1))
    assert [name for name, *_ in rows][-1] == "augment, 2 workers" and len(rows) == 5
    assert all(float(ratio) > 0 for *_, ratio in rows)
