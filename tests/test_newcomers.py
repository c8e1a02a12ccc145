"""The first task of each kind of person who comes to this package, from its commands or calls to the result."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import datasets
import pandas
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.cli import compare
from hf_paraphrase.released import RELEASED
from hf_paraphrase.serving.served_model import load_served_model
from tests.cli.runner import run
from tests.reproduction.test_tables import TINY, make_table
from tests.serving.running import run_app

LAKE = "Researchers measured the temperature of the lake every hour for three years."
MEETING = "The meeting was moved to Thursday because the room was taken."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_somebody_with_only_a_terminal(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", MEETING, "-n", 2) == 0
    first, *paraphrases = capsys.readouterr().out.strip().splitlines()
    assert first == MEETING and len(paraphrases) == 2 and all("Thursday" in line for line in paraphrases)
    (folder / "texts.csv").write_text(f"id,text\n1,{LAKE}\n2,Umbrella\n")
    assert run("paraphrase", "--input", "texts.csv", "--output", "out.csv") == 0
    with open("out.csv", encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["source"] == LAKE != row["text"]
    assert "2 texts, 1 of which have none" in capsys.readouterr().err


def test_a_data_scientist_with_a_data_frame() -> None:
    frame = pandas.DataFrame({"q": [LAKE, None, MEETING]}, index=["a", "b", "c"])
    frame["p"] = Paraphraser()(frame["q"], n=1)
    assert [len(group) for group in frame["p"]] == [1, 0, 1]
    assert "Thursday" in frame.loc["c", "p"][0].text


def test_a_writer_with_documents(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "notes.md").write_text(f"# Lake\n\n{LAKE}\n\n```\n{LAKE}\n```\n")
    (folder / "page.html").write_text(f"<h1>Lake</h1>\n<p>{LAKE}</p>\n")
    (folder / "film.srt").write_text(f"1\n00:00:01,000 --> 00:00:04,000\n{LAKE}\n")
    (folder / "terms.txt").write_text("every hour\n")
    for name in ("notes.md", "page.html", "film.srt"):
        assert run("paraphrase-document", name, "--output", f"new.{name}", "--diff", "--keep-file", "terms.txt") == 0
        before, after = ((folder / one).read_text().splitlines() for one in (name, f"new.{name}"))
        (changed,) = [number for number, lines in enumerate(zip(before, after, strict=True)) if len({*lines}) == 2]
        assert LAKE in before[changed] and "every hour" in after[changed]
        assert "temperature" in capsys.readouterr().out


def test_an_engineer_who_deploys() -> None:
    with run_app(load_served_model(RELEASED)) as server:
        assert server.client.get("/health").json()["status"] == "ok"
        first, second = server.post("/paraphrase", texts=[MEETING, "Umbrella"], n=1).json()["results"]
    assert len(first["paraphrases"]) == 1 and first["refusal"] is None
    assert second["paraphrases"] == [] and "single words" in second["refusal"]


def test_a_student_who_trains_on_own_pairs(folder: Path, capsys: pytest.CaptureFixture) -> None:
    words = itertools.product(
        ("the cat", "a dog", "my bird", "one man"), ("sat", "ran", "slept", "ate"), ("here", "there")
    )
    lines = [f"{who} {what} {where}\t{where} {who} {what}" for who, what, where in words]
    (folder / "pairs.tsv").write_text("\n".join(["source\ttarget", *lines, ""]))
    data = ("--dataset", "pairs", "--data-files", "pairs.tsv")
    sizes = [part for name, value in TINY.items() for part in (f"--{name}", value)]
    assert run("datasets", "preview", *data[1:]) == 0
    assert run("train", "--recipe", "residual-lstm-synthetic", *data, *sizes, "--output-dir", "runs/mine") == 0
    assert run("evaluate", "runs/mine", "--num-beams", 2, "--output-dir", "runs/mine/evaluation") == 0
    assert "the source, copied" in capsys.readouterr().out
    assert run("paraphrase", "runs/mine", "the cat sat here", "--min-adequacy", 0, "--min-novelty", 0) == 0
    assert capsys.readouterr().out.startswith("the cat sat here\n")


def test_a_researcher_who_reproduces_a_table(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "TABLES", ("tiny",))
    monkeypatch.setattr(compare, "load_table", lambda name: make_table())
    assert run("reproduce", "tiny", "--seeds", 1, "--output-dir", "runs/tiny") == 0
    printed = capsys.readouterr()
    assert "claimed: with attention > without in bleu_4" in printed.out
    assert printed.err.count(": trained, 3 steps") == 2
    assert json.loads((folder / "runs/tiny/tiny.json").read_text())["table"] == "tiny"


def test_a_maker_of_corpora(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "texts.csv").write_text(f"label,text\nlake,{LAKE}\nroom,{MEETING}\n")
    command = ("augment", "texts.csv", "--column", "text", "-n", 2, "--tasks", 2, "--output", "augmented")
    assert run(*command) == 0
    assert capsys.readouterr().out.startswith("2 rows: 4 paraphrases")
    rows = datasets.load_dataset("augmented", split="train")
    assert sorted(rows["label"]) == ["lake", "lake", "room", "room"] and not {LAKE, MEETING} & {*rows["paraphrase"]}
    files = {path: path.stat().st_mtime_ns for path in (folder / "augmented" / "data").iterdir()}
    assert run(*command) == 0, "the same command finds nothing to do"
    assert files == {path: path.stat().st_mtime_ns for path in (folder / "augmented" / "data").iterdir()}
