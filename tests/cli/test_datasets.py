from __future__ import annotations

import re

from hf_paraphrase.datasets import list_datasets
from tests.datasets.corpora import msrp, write

from .runner import run


def test_list(capsys):
    assert run("datasets", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list_datasets()
    assert all(line.endswith(".") for line in lines)


def test_info(capsys):
    assert run("datasets", "info", "msrp") == 0
    out = capsys.readouterr().out
    assert out.startswith("# msrp\n") and "## Layout\n\n`data_dir` holds `msr_paraphrase_train.txt`" in out
    assert run("datasets", "info", "msrq") == 2
    assert "did you mean msrp" in capsys.readouterr().err


def test_preview(tmp_path, capsys):
    options = ["--data-dir", write(tmp_path, msrp()), "--rows", "2", "--dataset-kwargs", "validation_size=7"]
    assert run("datasets", "preview", "msrp", *options, "--plot", tmp_path / "lengths.png") == 0
    out = capsys.readouterr().out
    assert "train: 33 rows" in out and "validation: 7 rows" in out and "test: 20 rows" in out
    assert "  sentence1             33     8.0     8       8     8       8\n" in out
    assert out.count("  label       ") == 6 and "  label       paraphrase\n" in out
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_preview_of_own_files(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text("question,target\n" + "".join(f"ask {number},{'word ' * 200}\n" for number in range(50)))
    assert run("datasets", "preview", "pairs", "--data-files", path, "--dataset-kwargs", "source_column=question") == 0
    out = capsys.readouterr().out
    assert "  source      ask " in out
    assert max(map(len, out.splitlines())) < 350


def test_preview_refuses_bad_input(tmp_path, capsys, monkeypatch):
    assert run("datasets", "preview", "msrp", "--data-dir", tmp_path) == 2
    assert re.match("error: .*msr_paraphrase_test.txt is missing .*expected in it", capsys.readouterr().err)
    assert run("datasets", "preview", "msrp", "--dataset-kwargs", "seed") == 2
    assert capsys.readouterr().err == "error: --dataset-kwargs takes KEY=VALUE, got 'seed'\n"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run("datasets", "preview", "msrp", "--plot", tmp_path / "lengths.png") == 2
    assert "pip install 'hf-paraphrase[plots]'" in capsys.readouterr().err
