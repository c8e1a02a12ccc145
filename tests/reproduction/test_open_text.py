"""The table of free text, made whole from trainings of three steps."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.cli.compare import Reproduce
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.paraphrases import COPIED
from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.metrics.ibleu.scoring import ibleu
from hf_paraphrase.papers.table import Settings
from hf_paraphrase.reproduction import open_text, trainings
from hf_paraphrase.reproduction.open_text import (
    SETTINGS,
    compare_on_open_text,
    format_open_text,
    score_answers,
    write_open_text,
)
from hf_paraphrase.training.recipe import load_recipe
from tests.models.tiny import save, shrink, tiny_bart

TINY = {"vocab_size": 300, "max_steps": 3, "max_new_tokens": 6}


def make_settings() -> Settings:
    """The systems with models of a few units, trained for three steps."""
    small = {}
    for name, one in SETTINGS.systems.items():
        recipe = load_recipe(one.recipe).override(one.fields)
        heads = {field: 1 for field in recipe.model_config if field.endswith("_heads")}
        small[name] = replace(one, fields={**one.fields, **shrink(recipe.model_config), **heads, **TINY})
    return Settings(small)


def write_groups(path: Path, word: str, count: int) -> str:
    lines = [
        f"On day {n} the {word} Tom went to the market .\tTom , the {word} , was at the market on day {n} ."
        for n in range(count)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, list[str]]:
    train = [write_groups(tmp_path / f"{word}.tsv", word, 100) for word in ("baker", "sailor")]
    # The first of its texts is trained on.
    mixed = Path(write_groups(tmp_path / "mixed.tsv", "farmer", 150))
    mixed.write_text(mixed.read_text() + Path(train[0]).read_text())
    return {"train": train, "test": [str(mixed)]}


def encode(texts: list[str]) -> np.ndarray:
    vectors = np.array([[1.0, len(text), text.count("Tom")] for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_table_is_made_whole_and_not_twice(
    files: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = save(tiny_bart(), tmp_path / "bart")
    options = {
        "trained": make_settings(),
        "systems": ["FSET", "SSRU, deep encoder"],
        "max_samples": 4,
        "n_samples": 20,
        "encoder": encode,
        "jobs": 2,
    }
    options |= {"round_trip": [translator, translator]}
    results = compare_on_open_text(files, tmp_path / "out", **options)
    systems = [entry.system for entry in results.entries]
    both = ["FSET", "SSRU, deep encoder", "paraphraser-en-small"]
    ways = [f"{name}, {way}" for name in both for way in ("first beam", "Paraphraser")]
    assert systems == [COPIED, *ways, "round trip, first beam"]
    for entry in results.entries:
        assert [group.value for group in entry.groups] == ["baker", "sailor", "mixed"]
        assert {"ibleu", "pinc", "adequacy", "names_kept", "numbers_kept", "answered"} <= {
            score.metric for score in entry.scores
        }
    copied = results.entries[0]
    assert copied.find("pinc").score == 0 and copied.find("adequacy").score == pytest.approx(100)
    fset = results.find("FSET, first beam")
    assert fset.training["steps"] == 3 and fset.counts["bytes"] > 0 and fset.speed.per_second > 0

    text = write_open_text(results, "the command", tmp_path / "out", tmp_path / "card")
    assert text == (tmp_path / "card" / "open-text.md").read_text() and "    the command\n" in text
    assert text.count("| FSET, first beam |") == 4 and "## mixed, " in text
    with lzma.open(tmp_path / "card" / "open-text-answers.json.xz", "rt", encoding="utf-8") as file:
        packed = json.load(file)
    entries = score_answers(packed["texts"], packed["systems"], n_samples=20)
    assert entries == results.entries == Results.load(tmp_path / "card" / "open-text.json").entries
    texts = packed["texts"]["mixed"]
    assert texts["source"] and not any("baker" in source for source in texts["source"])
    answers = packed["systems"]["SSRU, deep encoder"]["ways"]["Paraphraser"]["mixed"]["answers"]
    filled = [answer or source for answer, source in zip(answers, texts["source"], strict=True)]
    group = results.find("SSRU, deep encoder, Paraphraser").groups[2]
    expected = ibleu(filled, texts["references"], texts["source"], lowercase=True)["score"]
    assert {score.metric: score.score for score in group.scores}["ibleu"] == pytest.approx(expected)

    monkeypatch.setattr(trainings, "_call_train", lambda *_: pytest.fail("it is trained already"))
    monkeypatch.setattr(open_text, "_answer", lambda *_: pytest.fail("it has answered already"))
    assert compare_on_open_text(files, tmp_path / "out", **options).entries == results.entries
    with pytest.raises(InputError, match="has a run of another recipe"):
        compare_on_open_text(files, tmp_path / "out", **options | {"max_samples": 3})


def test_all_learn_the_same_pieces_of_the_same_mixture(files: dict[str, list[str]]) -> None:
    runs = open_text._list_runs(SETTINGS, files["train"], Path("runs"), 1, 4, 2500)
    shared = ("mixture", "pairs_per_group", "tokenizer_model", "lowercase", "max_tokens_per_batch", "mixed_precision")
    assert len({json.dumps([getattr(run.recipe.training, name) for name in shared]) for run in runs}) == 1
    assert {run.recipe.model_config["vocab_size"] for run in runs} == {12_000}


def test_a_language_model_answers_fewer_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"news": {"source": ["So Tom is 3 .", "A dog .", "A cat ."], "references": [["x"], ["y"], ["z"]]}}
    found = {"news": {"answers": ["Now Tom is 3 .", None], "cpu_seconds": 4.0}}
    record = {"parameters": 5, "bytes": 7_000_000, "training": {}, "ways": {"first beam": found}}
    copied = {"ways": {"": {"news": {"answers": texts["news"]["source"]}}}}
    entries = score_answers(texts, {COPIED: copied, "LM": record}, n_samples=20)
    (one,) = entries[1:]
    assert one.counts == {"rows": 2, "bytes": 7_000_000} and one.speed.per_second == 0.5
    assert one.find("answered").score == 50 and one.find("names_kept").score == 100
    assert one.find("adequacy") is None
    data = open_text.Data("groups", rows=3)
    environment = {"n_samples": 20, "seed": 1, "encoder": None, "device_name": "x", "threads": 1, "commit": None}
    results = Results("open_text", data, entries, environment | {"date": "2026-01-01"})
    text = format_open_text(results, "c")
    assert "Of fewer texts, the first of each kind: LM." in text and "cosine" not in text.lower()
    assert "| 2 | 0.5 | 5 | 7.0 | - |" in text


def test_what_it_cannot_do_shows_at_once(files: dict[str, list[str]], tmp_path: Path) -> None:
    for options, message in (
        ({"data_files": {"validation": files["test"]}}, "name files to train on"),
        ({"data_files": {"train": files["train"], "test": files["train"][:1]}}, "two files are called baker"),
        ({"data_files": files, "systems": ["DMPG"]}, "DMPG"),
        ({"data_files": files, "round_trip": ["only-there"]}, "two translators, there and back, not 1"),
    ):
        with pytest.raises(InputError, match=message):
            compare_on_open_text(**options, output_dir=tmp_path / "out")


def test_where_all_files_are_tested_on_nothing_is_trained(
    files: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "_call_train", lambda *_: pytest.fail("a training began"))
    # As the command calls it, with all its options.
    asked = Reproduce(table="open-text", output_dir=tmp_path, data_files={"test": files["train"]}, max_samples=2)
    text = asked.run()
    results = Results.load(tmp_path / "open-text.json")
    assert [entry.system for entry in results.entries] == [
        COPIED,
        "paraphraser-en-small, first beam",
        "paraphraser-en-small, Paraphraser",
    ]
    assert text + "\n" == (tmp_path / "open-text.md").read_text()
