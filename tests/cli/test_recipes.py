from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hf_paraphrase.training.loop
import hf_paraphrase.training.recipe
from hf_paraphrase.cli.train import describe_recipe
from hf_paraphrase.training.recipe import list_recipes, load_recipe

from .runner import run

SHOWN = ("residual-lstm-mscoco", "sarah-lm-gutenberg-small", "transformer-quora")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {name: folder for name, folder in list_recipes().items() if name in SHOWN}
    monkeypatch.setattr(hf_paraphrase.training.recipe, "list_recipes", lambda: shipped)


def test_a_recipe_is_described_by_paper_corpus_size_and_figures() -> None:
    described = describe_recipe("residual-lstm-mscoco")
    (five, ten) = described.pop("reported")
    words, width = 30_332, 512
    layer = 4 * width * (2 * width + 2)
    assert described == {
        "name": "residual-lstm-mscoco",
        "paper": "Prakash et al. 2016",
        "task": "paraphrase",
        "model_type": "residual_lstm",
        "dataset": "mscoco",
        "dataset_name": None,
        "mixture": [],
        # Embeddings and output vectors of the words, the output's bias, four layers on each side.
        "num_parameters": 2 * words * width + words + 8 * layer,
    }
    assert (five["num_beams"], five["scores"]["bleu_4"]) == (5, 36.7)
    assert (ten["num_beams"], ten["scores"]["meteor"]) == (10, 27.0)


@pytest.mark.usefixtures("few")
def test_the_table_has_a_line_a_recipe(capsys: pytest.CaptureFixture) -> None:
    assert run("recipes") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["recipe", "paper", "corpus", "what"]
    residual, sarah, transformer, start = lines
    assert residual.split("  ")[0] == "residual-lstm-mscoco"
    assert residual.endswith("  bleu_4 36.7 at beam 5, bleu_4 37.0 at beam 10: 4-layer residual, 512 units")
    assert sarah.split()[1:5] == ["Traynor", "2018", "gutenberg"]
    assert transformer.split()[:4] == ["transformer-quora", "Vaswani", "et", "al."]
    assert start.startswith("Start with residual-lstm-synthetic:") and "residual-lstm-synthetic" in list_recipes()


@pytest.mark.usefixtures("few")
def test_the_table_builds_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_paraphrase.checkpoints.pretrained.make_model", lambda *_: pytest.fail("a model was built"))
    assert run("recipes") == 0


@pytest.mark.usefixtures("few")
def test_json_has_every_figure(capsys: pytest.CaptureFixture) -> None:
    assert run("recipes", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [describe_recipe(name) for name in SHOWN]


def test_one_recipe_is_shown_with_the_origin_of_every_field(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    parent, child = load_recipe("residual-lstm-synthetic"), tmp_path / "mine"
    child.mkdir()
    (child / "training.yaml").write_text("extends: residual-lstm-synthetic\nseed: 7\n")
    (child / "config.json").write_text('{"num_layers": 3}')
    assert run("recipes", child) == 0
    lines = dict(re.findall(r"^  (\w+): .*  # (\S+)$", capsys.readouterr().out, re.MULTILINE))
    assert lines.pop("seed") == lines.pop("num_layers") == "mine"
    assert set(lines.values()) == {"residual-lstm-synthetic"}
    assert parent.model_config.keys() | parent.generation_config.keys() <= lines.keys() | {"num_layers"}
    assert run("recipes", child, "--json") == 0
    assert json.loads(capsys.readouterr().out)["training.yaml"]["seed"] == [7, "mine"]


def test_train_takes_a_name_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = []
    monkeypatch.setattr(hf_paraphrase.training.loop, "train", lambda recipe, *_, **__: asked.append(recipe))
    monkeypatch.chdir(tmp_path)
    assert run("train", "--recipe", "residual-lstm-synthetic", "--output-dir", "out") == 0
    assert asked == [load_recipe("residual-lstm-synthetic")]
    assert run("train", "--recipe", "residual-lstm-synthetik", "--output-dir", "out") == 2
    assert "did you mean residual-lstm-synthetic" in capsys.readouterr().err
