from __future__ import annotations

import sys
from functools import partial
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
    assert [row[4] for row in rows if "recall" in row[0]] == ["1.000", "1.000"]


def test_drawn_words_are_compared_in_whole_trainings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    vocabulary = import_module("benchmarks.vocabulary")
    (tmp_path / "li2018_split").mkdir()
    pairs = "".join(f"a{number} b c\tc b a{number}\n" for number in range(70))
    for split in ("train", "val", "test"):
        (tmp_path / "li2018_split" / f"{split}.tsv").write_text(pairs)
    for name, value in {
        "STEPS": 3,
        "DRAWN": 5,
        "SMALL": vocabulary.SMALL | {"hidden_size": 8, "vocab_size": 50},
    }.items():
        monkeypatch.setattr(vocabulary, name, value)
    speed, perplexity = vocabulary.compare_trainings(tmp_path, seed=0)
    assert speed.name.startswith("steps/s, 5 of ") and float(speed.ratio) > 0
    assert float(perplexity.ratio) == pytest.approx(float(perplexity.theirs) / float(perplexity.ours), rel=0.1)
    assert perplexity.ours != perplexity.theirs and speed.goal and perplexity.goal


def test_fset_beside_a_plain_transformer(monkeypatch: pytest.MonkeyPatch) -> None:
    fset = import_module("benchmarks.fset")
    monkeypatch.setattr(fset, "ROWS", 2)
    monkeypatch.setattr(fset, "WORDS", 3)
    config, batch = fset.FsetConfig(), fset.fset_batch(fset.FsetConfig(), "cpu")
    read = sum(batch[name].shape[1] for name in ("input_ids", *2 * ("retrieved_source_ids", "retrieved_target_ids")))
    assert read == fset.READ * fset.WORDS == fset.make_marian(config).config.max_position_embeddings
    (row,) = fset.benchmark_fset("cpu", repeats=1)
    assert float(row.ratio) > 0 and row.goal


def test_beam_search_is_compared_for_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    beam = import_module("benchmarks.beam")
    for name, value in {"GOALS": {50: "≥ 1"}, "ROWS": 2, "MAX_NEW_TOKENS": 4}.items():
        monkeypatch.setattr(beam, name, value)
    monkeypatch.setattr(beam, "SIZE", {"layers": 1, "width": 16, "heads": 2, "inner": 16})
    rows = beam.benchmark_beam("cpu", repeats=1)
    assert [name for name, *_ in rows] == [f"beam 5, {name}, 50" for name in beam.MODELS]
    assert all(float(row.ratio) > 0 and row.goal for row in rows)
    # Of two searches that differ there is nothing to measure.
    monkeypatch.setattr(beam, "beam_search", import_module("hf_paraphrase.models.search.dips").dips)
    with pytest.raises(ValueError, match="differ"):
        beam.benchmark_beam("cpu", repeats=1)


def test_the_report_is_a_table_of_what_parts_claim(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    benchmark, timing = import_module("benchmark"), import_module("benchmarks.timing")
    claim = timing.Row("ours", "theirs", "4", "2", "0.50", goal="≥ 2")
    measured = {"benchmark_some": [("only measured", "theirs", "1", "1", "1.00"), claim], "benchmark_others": [claim]}
    for name, rows in measured.items():
        monkeypatch.setattr(timing, name, lambda device, repeats, rows=rows: iter(rows), raising=False)
    parts = {name.removeprefix("benchmark_"): ("timing", name) for name in measured}
    monkeypatch.setattr(benchmark, "PARTS", parts)
    line = "| ours | theirs | 4 | 2 | 0.50 | ≥ 2 | missed | `python scripts/benchmark.py {}` |"
    for asked, found in ((["report"], list(parts)), (["report", "some"], ["some"])):
        benchmark.main(asked, device="cpu", threads=1, repeats=1, quora_dir=None)
        machine, _, header, rule, *rows = capsys.readouterr().out.splitlines()
        assert "cores, torch" in machine and header.count("|") == rule.count("|") == line.count("|")
        assert rows == [line.format(part) for part in found]
    benchmark.main(["some"], device="cpu", threads=1, repeats=1, quora_dir=None)
    assert "only measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ratio", "goal", "verdict"),
    [
        ("2.00", "≥ 2", "met"),
        ("1.99", "≥ 2", "missed"),
        ("0.50 s", "≤ 0.5 s", "met"),
        ("2.15 of their time", "≤ 1.2", "missed"),
        ("1,060", "≥ 60", "met"),
    ],
)
def test_the_verdict_compares_the_ratio_with_the_goal(ratio: str, goal: str, verdict: str) -> None:
    benchmark, timing = import_module("benchmark"), import_module("benchmarks.timing")
    assert benchmark.judge(timing.Row("ours", "theirs", "", "", ratio, goal)) == verdict


def test_the_parts_of_large_vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = import_module("benchmarks.vocabulary")
    for name, value in {"DOCUMENTS": 2, "WORDS": 300, "UNITS": 8, "VOCABULARY": 20_000}.items():
        monkeypatch.setattr(vocabulary, name, value)
    monkeypatch.setattr(vocabulary, "fresh_cost_of", vocabulary.cost_of)
    assert [row.goal for row in vocabulary.benchmark_memory("cpu", repeats=1)] == ["≥ 1", "≥ 5"]
    monkeypatch.setattr(
        vocabulary, "ResidualLstmConfig", partial(vocabulary.ResidualLstmConfig, vocab_size=3000, hidden_size=8)
    )
    assert [float(row.ratio) > 0 for row in vocabulary.benchmark_sampled("cpu", repeats=1)] == [True, True]


def test_a_search_against_ctranslate2_and_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2")
    recurrent = import_module("benchmarks.recurrent")
    sizes = {"vocab_size": 12, "embedding_size": 8, "hidden_size": 8, "num_layers": 2}
    for name, value in {"STEP_SIZES": sizes, "TEXTS": 2, "LENGTH": 3}.items():
        monkeypatch.setattr(recurrent, name, value)
    rows = recurrent.benchmark_ctranslate2("cpu", repeats=1)
    assert [against for _, against, *_ in rows][::2] == ["CTranslate2 BART, float32", "CTranslate2 BART, int8"]


def test_the_part_of_the_augmentation(monkeypatch: pytest.MonkeyPatch) -> None:
    augmentation = import_module("benchmarks.augmentation")
    sizes = augmentation.SIZES | {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    for name, value in {"ROWS": 6, "TASKS": 2, "WORDS": 30, "SIZES": sizes}.items():
        monkeypatch.setattr(augmentation, name, value)
    rows = list(augmentation.benchmark_augment("cpu", repeats=1))
    assert [name for name, *_ in rows][-1] == "augment, 2 workers" and len(rows) == 5
    assert all(float(row[4]) > 0 for row in rows)


def test_the_part_of_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    int8 = import_module("benchmarks.int8")
    monkeypatch.setattr(int8, "QUESTIONS", int8.QUESTIONS[:1])
    monkeypatch.setattr(int8, "LSTM_SIZES", ((2, 16, 2000),))
    rows = list(int8.benchmark_int8("cpu", repeats=1))
    names = ("int8", "int8, LSTM 2 × 16, 2,000 words")
    assert [(name, goal) for name, *_, goal in rows] == [
        (f"{name}, beam {beams}, s", goal) for name in names for beams, goal in ((5, "≥ 1.5"), (1, ""))
    ]
    assert all(float(row.ratio) > 0 for row in rows)


def test_the_part_of_the_paraphraser(monkeypatch: pytest.MonkeyPatch) -> None:
    paraphraser = import_module("benchmarks.paraphraser")
    monkeypatch.setattr(paraphraser, "SENTENCES", paraphraser.SENTENCES[:1])
    monkeypatch.setattr(paraphraser, "OPENINGS", paraphraser.OPENINGS[:2])
    rows = list(paraphraser.benchmark_paraphraser("cpu", repeats=1))
    assert [row.goal for row in rows] == ["≥ 30", "≤ 0.25", "", "", "≥ 60"]
    assert all(float(row.ratio) > 0 for row in rows) and float(rows[1].ratio) < 1


def test_what_ten_times_as_much_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    growth = import_module("benchmarks.growth")
    sizes = {"words": (2, 4), "beams": (1, 2), "pairs": (300, 600)}
    steps = growth.STEP_SIZES | {"vocab_size": 30, "embedding_size": 8, "hidden_size": 8}
    for name, value in {"SIZES": sizes, "STEP_SIZES": steps, "BLOCK": 300, "QUERIES": 10}.items():
        monkeypatch.setattr(growth, name, value)
    monkeypatch.setattr(growth, "fresh_cost_of", lambda kind, size: getattr(growth, f"cost_of_{kind}")(size))
    monkeypatch.setattr(growth, "memory_in_use", lambda kind: 1.0 + (kind == "VmHWM"))
    monkeypatch.setattr(growth, "exponent", lambda sizes, values: 0.5)
    rows = list(growth.benchmark_growth("cpu", repeats=1, picture=tmp_path / "growth.png"))
    assert [row.name for row in rows][:2] == ["4 words, s", "4 words, MB"]
    assert next(float(row.ours) for row in rows if "recall" in row.name) > 0.9
    assert (tmp_path / "growth.png").stat().st_size > 5000


def test_the_exponent_is_that_of_a_power() -> None:
    exponent = import_module("benchmarks.growth").exponent
    assert exponent((10, 100, 1000), [3 * size**1.5 for size in (10, 100, 1000)]) == pytest.approx(1.5)


def test_a_peer_works_in_its_own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    peer = import_module("benchmarks.peer")
    assert list(peer.benchmark_peer("cpu", repeats=1)) == []
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import sys\nfor line in sys.stdin:\n    print({'train': 100, 'decode': 50}[line.strip()], flush=True)"
    )
    for name, value in {"WORKER": worker, "ROWS": 2, "LENGTH": 3, "VOCABULARY": 50, "SIZE": 8, "DRAWN": 5}.items():
        monkeypatch.setattr(peer, name, value)
    rows = list(peer.benchmark_peer("cpu", repeats=1, joeynmt=Path(sys.executable)))
    assert [row.goal for row in rows] == ["≥ 2", "", "≥ 2"]
    assert all(float(row.ratio) > 1 for row in rows)
