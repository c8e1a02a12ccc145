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


def test_a_search_against_ctranslate2_and_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2")
    recurrent = import_module("benchmarks.recurrent")
    sizes = {"vocab_size": 12, "embedding_size": 8, "hidden_size": 8, "num_layers": 2}
    for name, value in {"STEP_SIZES": sizes, "TEXTS": 2, "LENGTH": 3}.items():
        monkeypatch.setattr(recurrent, name, value)
    rows = recurrent.benchmark_ctranslate2("cpu", repeats=1)
    assert [against for _, against, *_ in rows][::2] == ["CTranslate2 BART, float32", "CTranslate2 BART, int8"]
    assert all(float(ratio) > 0 for *_, ratio in rows)
