"""What a user sees of the templates; runs as a test of the copy of the repository that they have moved into."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest
from transformers import AutoModelForSeq2SeqLM, pipeline

import hf_paraphrase
from hf_paraphrase.cli.app import main
from tests.datasets.corpora import load_arguments
from tests.models.tiny import save, tiny_model
from tests.models.without_package import run_without_the_package

TASK = "text2text-generation"


def run(*args: str | Path) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([str(arg) for arg in args])
    assert exit_info.value.code == 0


def test_names_are_public():
    assert {"BagGruConfig", "BagGruForConditionalGeneration", "BagGruModel"} <= set(hf_paraphrase.__all__)
    assert "proverbs" in hf_paraphrase.list_datasets()
    assert "length_ratio" in hf_paraphrase.list_metrics()


def test_a_checkpoint_brings_its_code(tmp_path):
    model = tiny_model(hf_paraphrase.BagGruConfig, hf_paraphrase.BagGruForConditionalGeneration)
    folder = save(model, tmp_path / "checkpoint")
    texts = ["the cat", "", "a dog sat on the mat"]
    _, first, second = run_without_the_package(folder, TASK, texts, tmp_path, max_new_tokens=6)
    assert first == second == pipeline(TASK, model=folder)(texts, max_new_tokens=6)


def test_the_recipe_is_listed(capsys):
    run("recipes", "--json")
    (row,) = (row for row in json.loads(capsys.readouterr().out) if row["name"] == "bag-gru-proverbs")
    assert (row["paper"], row["model_type"], row["dataset"]) == ("Cho et al. 2014", "bag_gru", "proverbs")
    # Words in and out with a bias, a layer of the encoder, and the three parts of the GRU with two biases each.
    assert row["num_parameters"] == 2000 * 129 + 64 * 65 + 3 * 64 * (2 * 64 + 2)


def test_the_recipe_trains_and_its_outputs_are_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = load_arguments("proverbs", None, tmp_path / "data")["data_dir"]
    recipe = ["--recipe", "bag-gru-proverbs", "--data-dir", folder]
    run("train", *recipe, "--output-dir", tmp_path / "run", "--max_steps", 2)
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert type(model) is hf_paraphrase.BagGruForConditionalGeneration
    assert json.loads((tmp_path / "run" / "training_summary.json").read_text())["steps"] == 2

    sources, outputs = tmp_path / "sources.txt", tmp_path / "outputs.txt"
    sources.write_text("a b c d\ne f\n")
    outputs.write_text("a b\nc\n")
    files = ["--predictions", outputs, "--references", sources, "--sources", sources]
    capsys.readouterr()
    run("score", *files, "--metrics", "length_ratio", "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["metric"], row["score"]) == ("length_ratio", 0.5)
