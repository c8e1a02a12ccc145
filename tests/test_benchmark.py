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


def test_fset_beside_a_plain_transformer(monkeypatch: pytest.MonkeyPatch) -> None:
    fset = import_module("benchmarks.fset")
    monkeypatch.setattr(fset, "ROWS", 2)
    monkeypatch.setattr(fset, "WORDS", 3)
    config, batch = fset.FsetConfig(), fset.fset_batch(fset.FsetConfig(), "cpu")
    read = sum(batch[name].shape[1] for name in ("input_ids", *2 * ("retrieved_source_ids", "retrieved_target_ids")))
    assert read == fset.READ * fset.WORDS == fset.make_marian(config).config.max_position_embeddings
    ((*_, ratio),) = fset.benchmark_fset("cpu", repeats=1)
    assert float(ratio) > 0


def test_beam_search_is_compared_for_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    beam = import_module("benchmarks.beam")
    for name, value in {"VOCABULARIES": (50,), "ROWS": 2, "MAX_NEW_TOKENS": 4}.items():
        monkeypatch.setattr(beam, name, value)
    monkeypatch.setattr(beam, "SIZE", {"layers": 1, "width": 16, "heads": 2, "inner": 16})
    rows = beam.benchmark_beam("cpu", repeats=1)
    assert [name for name, *_ in rows] == [f"beam 5, {name}, 50" for name in beam.MODELS]
    assert all(float(ratio) > 0 for *_, ratio in rows)
    # Of two searches that differ there is nothing to measure.
    monkeypatch.setattr(beam, "beam_search", import_module("hf_paraphrase.models.dips").dips)
    with pytest.raises(ValueError, match="differ"):
        beam.benchmark_beam("cpu", repeats=1)
