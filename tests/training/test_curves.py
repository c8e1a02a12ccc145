from __future__ import annotations

import json

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training import loop
from hf_paraphrase.training.reporting import plot_learning_curves

from .tiny_runs import make_pairs, make_recipe

pytest.importorskip("matplotlib")
EVALUATIONS = [
    {"step": 5, "epoch": 1.0, "train_perplexity": 30.0, "eval_perplexity": 25.0, "eval_loss": 3.2},
    {"step": 10, "epoch": 2.0, "train_perplexity": 20.0, "eval_perplexity": 22.0, "eval_loss": 3.1},
]


def test_curves_of_a_summary_and_of_a_running_training(tmp_path):
    running = tmp_path / "running"
    running.mkdir()
    entries = [{"step": 1, "epoch": 0.2, "loss": 4.0}, *EVALUATIONS]
    (running / "log_history.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    plot_learning_curves({"a": {"evaluations": EVALUATIONS}, "b": running}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "running"]


def test_training_ends_with_its_curves(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "plot_learning_curves", plot_learning_curves)
    loop.train(make_recipe(max_steps=2), tmp_path, dataset=make_pairs())
    assert (tmp_path / "learning_curves.png").read_bytes().startswith(b"\x89PNG")


def test_folder_without_a_run_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="log_history.jsonl is missing"):
        plot_learning_curves({"a": tmp_path}, tmp_path / "curves.png")


def test_run_without_validation_is_an_error(tmp_path):
    with pytest.raises(InputError, match="run a has no validation"):
        plot_learning_curves({"a": {"evaluations": []}}, tmp_path / "curves.png")


def test_curves_of_fine_tuning(tmp_path):
    entry = {"epoch": 1.0, "step": 1, "eval_loss": 1.5}
    runs = {"fine-tuned": {"evaluations": [{**entry, "eval_general_loss": 2.0}]}, "anew": {"evaluations": [entry]}}
    plot_learning_curves(runs, tmp_path / "curves.png", fine_tuning=True)
    assert (tmp_path / "curves.png").stat().st_size > 5000
