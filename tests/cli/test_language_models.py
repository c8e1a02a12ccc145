"""The commands for language models of sentences, on two that are trained in two steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.training.recipe import Recipe
from tests.training.tasks.test_language_model import SIZES, WORDS, LanguageModelConfig

from .runner import run


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> Path:
    """Documents of 20 lines, some of them to validate on and some to test on."""
    folder, draw = tmp_path_factory.mktemp("books"), random.Random(0)
    lines = [f"the {draw.choice(WORDS)} and the {draw.choice(WORDS)} ." for _ in range(800)]
    (folder / "books.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(books, tmp_path_factory) -> Path:
    training = LanguageModelConfig(
        dataset="books",
        dataset_kwargs={"lines_per_document": 20, "validation_fraction": 0.2, "test_fraction": 0.2},
        max_steps=2,
        train_batch_size=8,
        max_eval_samples=20,
        disable_tqdm=True,
    )
    folder = tmp_path_factory.mktemp("trained")
    Recipe("tiny-gru", SIZES | {"sentence_encoder": "gru"}, {}, training).save(folder / "tiny-gru")
    assert run("train", "--recipe", folder / "tiny-gru", "--data-dir", books, "--output-dir", folder / "run") == 0
    return folder / "run"


def test_evaluate_scores_a_language_model(trained, books, tmp_path, capsys):
    options = ["--data-dir", books, "--max-samples", 16, "--output-dir", tmp_path]
    assert run("evaluate", trained, *options) == 0
    out = capsys.readouterr().out
    (entry,) = Results.load(tmp_path / "results-test.json").of("model")
    assert out.startswith("books, split test, 16 examples of next_sentence\n")
    assert f": {entry.scores[0].score:.3f} (" in out
    assert run("evaluate", trained, *options, "--objective", "autoencode") == 0
    assert "16 examples of autoencode" in capsys.readouterr().out
    assert run("evaluate", trained, *options, "--objective", "rbm") == 2
    assert "`objective` must be one of 'next_sentence', 'autoencode' or null, not 'rbm'" in capsys.readouterr().err
    assert run("evaluate", trained, *options, "--num-neighbors", 2) == 2
    assert capsys.readouterr().err == (f"error: --num-neighbors is for a paraphraser; {trained} is a language model\n")


def test_explain_map(trained, books, tmp_path):
    options = ["--dataset", "books", "--data-dir", books, "--max-documents", 30, "--num-words", 5]
    options += ["--num-sentences", 12, "--near-word", "rainy", "--near-sentence", "The rain.", "--num-nearest", 4]
    options += ["--perplexity", 3.0, "--output-dir", tmp_path]
    assert run("explain", "map", trained, *options) == 0
    names = {"words", "sentences", "words-near-1", "sentences-near-1"}
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("png", "html")
    }
    assert "rainy" in (tmp_path / "words-near-1.html").read_text(encoding="utf-8")


def test_explain_map_refuses_what_it_cannot_map(trained, books, tmp_path, capsys):
    model, options = trained, ["--output-dir", tmp_path, "--num-words", 5, "--num-sentences", 9]
    assert run("explain", "map", model, "--dataset", "synthetic_questions", *options) == 2
    assert "no column `sentences`" in capsys.readouterr().err
    two_words = ["--near-word", "two words"]
    assert run("explain", "map", model, "--dataset", "books", "--data-dir", books, *options, *two_words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: 'two words' is not a single word")


def test_paraphrases_by_noise_ordered_by_meaning(trained, tmp_path, capsys):
    """Without any example pair, the nearest first (Traynor 2018, table 4.3)."""
    (tmp_path / "sentences.txt").write_text("the sun and the rain .\nsnow\n")
    command = ["paraphrase", trained, "--input", tmp_path / "sentences.txt", "-n", 3, "--json"]
    command += ["--num-candidates", 9, "--select", "embedding", "--min-novelty", 0, "--min-adequacy", 0]
    assert run(*command, "--temperature", "0.5", "--noise", "uniform", "--keep", "none") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["source"] for row in rows] == ["the sun and the rain .", "snow"] and rows[0]["paraphrases"]
    for row in rows:
        adequacy = [scores["adequacy"] for scores in row["scores"]]
        assert adequacy == sorted(adequacy, reverse=True)
    assert run(*command, "--noise", "much") == 2
    assert capsys.readouterr().err.endswith("error: --noise takes a number or uniform, got 'much'\n")
    assert run(*command, "--noise", "-1") == 2
    assert "`noise` must be" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain map"])
def test_a_model_without_sentence_vectors_is_refused(command, checkpoint, tmp_path, capsys):
    assert run(*command.split(), checkpoint, "--output-dir", tmp_path) == 2
    assert capsys.readouterr().err == (
        f"error: {checkpoint} is a bart, which cannot embed words and sentences; hierarchical_lm can\n"
    )
