from __future__ import annotations

import re

import pytest

from hf_paraphrase.datasets import list_datasets
from hf_paraphrase.evaluation.results import Results
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


@pytest.fixture
def questions(tmp_path):
    rows = (f"ask {number},please ask {number}\n" for number in range(50))
    (tmp_path / "questions.csv").write_text("question1,question2\n" + "".join(rows))
    return tmp_path / "questions.csv"


COLUMNS = ("--dataset-kwargs", "columns.source=question1", "--dataset-kwargs", "columns.target=question2")


def test_preview_of_what_datasets_reads(questions, capsys):
    assert run("datasets", "preview", questions, *COLUMNS) == 0
    out = capsys.readouterr().out
    assert "train: 40 rows" in out and "validation: 5 rows" in out and "test: 5 rows" in out
    assert "  references  [" in out and "question1" not in out
    assert run("datasets", "preview", questions, "--dataset-kwargs", "columns.source=question") == 2
    assert "has no column 'question'; it has: question1, question2" in capsys.readouterr().err


def test_a_streamed_preview_shows_the_first_rows(questions, capsys):
    streamed = ("--dataset-kwargs", "streaming=true")
    assert run("datasets", "preview", questions, *streamed, "--rows", "2") == 0
    assert capsys.readouterr().out == (
        "train: streamed\n\n  question1   ask 0\n  question2   please ask 0\n\n"
        "  question1   ask 1\n  question2   please ask 1\n\n"
    )
    assert run("retriever", "train", "--dataset", questions, *streamed, "--output-dir", questions.parent / "out") == 2
    assert "streaming=true is for `datasets preview`" in capsys.readouterr().err


def test_what_datasets_reads_is_trained_on_evaluated_and_compared(questions, tmp_path, capsys):
    """One way to name it, for every command."""
    fields = ("--hidden-size", 8, "--embedding-size", 8, "--num-layers", 1, "--vocab-size", 20, "--max-steps", 2)
    chosen = ("--dataset", questions, *COLUMNS)
    train = ("train", "--recipe", "residual-lstm-synthetic", *chosen, *fields)
    assert run(*train, "--output-dir", tmp_path / "run") == 0
    # What it was trained on is known to the run.
    assert run("evaluate", tmp_path / "run", "--num-beams", 1, "--output-dir", tmp_path / "evaluation") == 0
    results = Results.load(tmp_path / "evaluation/results-test.json")
    assert (results.data.rows, results.data.kwargs["columns"]["target"]) == (5, "question2")
    options = ("--metrics", "bleu", "--num-candidates", 1, "--num-beams", 1, "--output-dir", tmp_path / "comparison")
    assert run("compare", f"one={tmp_path / 'run'}", f"two={tmp_path / 'run'}", *chosen, *options) == 0
    assert Results.load(tmp_path / "comparison/comparison.json").data.rows == 5
    capsys.readouterr()
    assert run(*train, "--dataset-kwargs", "streaming=true", "--output-dir", tmp_path / "other") == 2
    assert "has no split validation, only: train; what is streamed is not split" in capsys.readouterr().err


def test_preview_refuses_bad_input(tmp_path, capsys, monkeypatch):
    assert run("datasets", "preview", "msrp", "--data-dir", tmp_path) == 2
    assert re.match("error: .*holds no such file .*msr_paraphrase_test.txt", capsys.readouterr().err)
    assert run("datasets", "preview", "msrp", "--dataset-kwargs", "seed") == 2
    assert capsys.readouterr().err == "error: --dataset-kwargs takes KEY=VALUE, got 'seed'\n"
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    assert run("datasets", "preview", "msrp", "--plot", tmp_path / "lengths.png") == 2
    assert "pip install 'hf-paraphrase[plots]'" in capsys.readouterr().err
