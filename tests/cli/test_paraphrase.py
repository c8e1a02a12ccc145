from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from .runner import run


def test_paraphrase_arguments(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "how do i cook ?", "can you make bread ?", "--max-new-tokens", "4") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run("paraphrase", checkpoint, "how do i cook ?", "bread", "--num-return-sequences", "3") == 0
    blocks = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == ["how do i cook ?", "bread"]
    assert [len(block.split("\n")) for block in blocks] == [4, 4]


def test_paraphrase_in_other_ways(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    outputs = set()
    for options in (
        [],
        ["--decoding", "dips", "--fidelity", "0"],
        ["--decoding", "diverse_beam", "--diversity-penalty", 9],
    ):
        options = ["--max-new-tokens", "5", "--num-return-sequences", "4", *options]
        assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 3
    options = ["--max-new-tokens", "5", "--decoding", "dips", "--fidelity", "0", "--allow-source"]
    assert run("paraphrase", checkpoint, "how do i cook ?", *options) == 0


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


def test_a_decoding_that_nobody_knows(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "a", "--decoding", "best") == 2
    assert capsys.readouterr().err == "error: --decoding must be one of beam, diverse_beam, dips, not best\n"


def test_paraphrase_lines_as_json(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("how do i cook ?\nbread\n"))
    assert (
        run("paraphrase", checkpoint, "--json", "--do-sample", "--num-return-sequences", "2", "--temperature", "2")
        == 0
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["source"] for row in rows] == ["how do i cook ?", "bread"]
    assert [len(row["paraphrases"]) for row in rows] == [2, 2]


def test_paraphrase_refuses_bad_input(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "a", "--num-beams", "2", "--num-return-sequences", "3") == 2
    assert capsys.readouterr().err.endswith("error: --num-beams 2 cannot return 3 paraphrases; widen it\n")
    assert run("paraphrase", tmp_path / "nowhere", "a") == 2
    assert "is neither a checkpoint folder nor a Hub repository" in capsys.readouterr().err


def test_long_texts_are_cut_and_counted(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    long = "can you make bread ? " * 5000
    options = ["--max-new-tokens", "4", "--max-source-length", "9"]
    for way in ([], ["-n", "1"]):
        assert run("paraphrase", checkpoint, long, "how do i cook ?", *options, *way) == 0
        assert capsys.readouterr().out
    assert run("paraphrase", checkpoint, long, "how do i cook ?", "--max-new-tokens", "4") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err.endswith(" tokens and are read up to there (`max_source_length`)\n")
    assert "1 of 2 texts have more than " in captured.err
    assert run("paraphrase", checkpoint, " ".join(long.split()[:8]), *options) == 0
    cut = capsys.readouterr().out
    assert run("paraphrase", checkpoint, long, *options) == 0
    assert capsys.readouterr().out == cut
