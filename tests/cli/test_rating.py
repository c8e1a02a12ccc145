from __future__ import annotations

import json
from pathlib import Path

import pytest

from hf_paraphrase.rating import read_outputs

from .runner import run


def test_forms_from_files(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rows = [
        {"source": "a b", "references": ["c"], "prediction": "d", "predictions": ["d", "e"]},
        {"source": "f", "references": ["g"], "prediction": "h"},
    ]
    for name in ("one", "other"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_outputs(tmp_path / "one.jsonl") == [("a b", ("d", "e")), ("f", ("h",))]
    options = ["--num-sources", "2", "--output-dir", str(tmp_path / "forms")]
    systems = [f"--system={name}={tmp_path / name}.jsonl" for name in ("one", "other")]
    assert run("rating", "make", *systems, *options) == 0
    assert capsys.readouterr().out.startswith(f"ratings: {tmp_path / 'forms' / 'ratings.html'}\n")
    assert run("rating", "make", systems[0], systems[0], *options) == 2
    assert "each name once" in capsys.readouterr().err
    (tmp_path / "one.jsonl").write_text('{"source": "a b"}\n')
    assert run("rating", "make", *systems, *options) == 2
    assert "one.jsonl, line 1: this must be a JSON object with `source`" in capsys.readouterr().err


def test_files_that_are_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rows, latin = tmp_path / "rows.jsonl", tmp_path / "latin.csv"
    rows.write_text('{"source": "a b", "prediction": "c"}\n')
    latin.write_bytes("form,rater\n1,José\n".encode("latin-1"))
    assert run("rating", "make", "--system", f"A={latin}", "--output-dir", tmp_path) == 2
    assert capsys.readouterr().err.startswith(f"error: {latin} is not valid UTF-8")
    systems = ["--system", f"A={rows}", "--system", f"B={rows}"]
    assert run("rating", "make", *systems, "--num-sources", 1, "--output-dir", tmp_path) == 0
    assert run("rating", "read", tmp_path / "key.json", latin) == 2
    assert capsys.readouterr().err.startswith(f"error: {latin} is not valid UTF-8")
