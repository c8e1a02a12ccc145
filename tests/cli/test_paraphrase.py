from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hf_paraphrase.metrics.score_files import read_scored_texts
from hf_paraphrase.models.text.candidate_selection import jaccard_similarity

from .runner import run

# Models with random weights say what nobody takes for a paraphrase.
OPEN = ["--min-adequacy", "0", "--keep", "none"]


def test_paraphrase_in_other_ways(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    outputs = set()
    for options in (
        [],
        ["--decoding", "dips", "--fidelity", "0"],
        ["--decoding", "diverse_beam", "--diversity-penalty", 9],
        ["--decoding", "sample", "--temperature", "2"],
    ):
        options = ["--max-new-tokens", "5", "-n", "4", *OPEN, *options]
        assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 4
    options = ["--max-new-tokens", "5", "--decoding", "dips", "--fidelity", "0", "--allow-source"]
    assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0


@pytest.mark.parametrize("rule", ["score", "jaccard", "mbr"])
def test_one_rule_orders(rule: str, checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    options = ["-n", "3", "--select", rule, "--max-new-tokens", "5", "--json", *OPEN]
    assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0
    row = json.loads(capsys.readouterr().out)
    counted = [scores["fluency" if rule == "score" else "adequacy"] for scores in row["scores"]]
    assert [scores["score"] for scores in row["scores"]] == pytest.approx(counted)
    assert counted == sorted(counted, reverse=True) and len(counted) == len(row["paraphrases"]) == 3
    if rule == "jaccard":
        assert counted == pytest.approx([jaccard_similarity(row["source"], text) for text in row["paraphrases"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fidelity", "0.3"], "--fidelity is an option of --decoding dips"),
        (["--exclude-source"], "--exclude-source is an option of --decoding diverse_beam and dips"),
        (
            ["--decoding", "dips", "--num-beam-groups", "2"],
            "--num-beam-groups is an option of --decoding diverse_beam",
        ),
        (
            ["--decoding", "diverse_beam", "--num-beams", "4", "--num-beam-groups", "3"],
            "--num-beam-groups 3 does not divide --num-beams 4",
        ),
    ],
)
def test_options_of_another_decoding(
    options: list[str], message: str, checkpoint: Path, capsys: pytest.CaptureFixture
) -> None:
    for command in (["paraphrase", checkpoint, "a"], ["evaluate", checkpoint, "--dataset", "synthetic_questions"]):
        assert run(*command, *options) == 2
        assert capsys.readouterr().err.endswith(f"error: {message}\n")


def test_json_is_what_score_reads(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("how do i cook ?\n\nbread\n"))
    assert run("paraphrase", checkpoint, "--json", "-n", "2", "--max-new-tokens", "5", *OPEN) == 0
    out = capsys.readouterr().out
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["source"] for row in rows] == ["how do i cook ?", "", "bread"]
    assert [len(row["paraphrases"]) for row in rows] == [len(row["scores"]) for row in rows] == [2, 0, 2]
    (tmp_path / "out.jsonl").write_text(out)
    (tmp_path / "references.txt").write_text("do i cook\nx\nbread\n")
    read = read_scored_texts([tmp_path / "out.jsonl"], [tmp_path / "references.txt"])
    assert read.runs == [[rows[0]["paraphrases"][0], "", rows[2]["paraphrases"][0]]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "{in}", "--output", "{in}"], "--output: {in} is the input; name another file"),
        (["--input", "-", "--column", "text"], "--column is for --input FILE"),
        (["a text", "--column", "text"], "--column is for --input FILE"),
        (["a text", "--safe-cells"], "--safe-cells and --raw-cells are for --output FILE"),
        (
            ["a text", "--json", "--output", "{in}"],
            "--json is for what is printed; name an --output that ends in .jsonl",
        ),
    ],
)
def test_options_that_would_go_unheard_are_refused_before_a_file_is_opened(
    options: list[str], message: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text\nhow do i cook ?\n")
    options = [option.replace("{in}", str(file)) for option in options]
    assert run("paraphrase", "--model", checkpoint, *options) == 2
    assert capsys.readouterr().err.endswith(f"error: {message.replace('{in}', str(file))}\n")
    assert file.read_text() == "text\nhow do i cook ?\n"


def test_a_model_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", tmp_path / "nowhere", "a") == 2
    assert "is neither a checkpoint folder nor a Hub repository" in capsys.readouterr().err


def test_long_texts_are_cut_and_counted(
    checkpoint: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture
) -> None:
    long = "can you make bread ? " * 5000
    options = ["--max-new-tokens", "4", *OPEN]
    assert run("paraphrase", checkpoint, long, "how do i cook ?", *options) == 0
    told = "".join(record.getMessage() for record in caplog.records) + capsys.readouterr().err
    assert "1 of 2 texts have more than " in told
    options += ["--max-source-length", "9", "--min-novelty", "0", "--json"]
    found = []
    for text in (" ".join(long.split()[:8]), long):
        assert run("paraphrase", checkpoint, text, *options) == 0
        found.append(json.loads(capsys.readouterr().out)["paraphrases"])
    assert found[0] == found[1] != []
