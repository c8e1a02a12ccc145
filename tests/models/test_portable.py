from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from transformers import pipeline

import hf_paraphrase
from hf_paraphrase.models.layers.portable import PortableConfig
from tests.models.tiny import WORDS, save
from tests.models.without_package import run_without_the_package

TASK = "text2text-generation"
TEXTS = ["the cat", "", "a dog sat on the mat"]


@pytest.fixture(scope="module")
def model():
    config = hf_paraphrase.ResidualLstmConfig(
        vocab_size=len(WORDS),
        embedding_size=8,
        hidden_size=8,
        num_layers=2,
        attention="additive",
        initializer_range=1.0,
    )
    return hf_paraphrase.ResidualLstmForConditionalGeneration(config).eval()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> str:
    return save(model, tmp_path_factory.mktemp("checkpoint"))


def read_config(folder) -> dict:
    return json.loads(Path(folder, "config.json").read_text())


def test_a_checkpoint_names_the_pipeline_and_brings_its_code(model, folder):
    (entry,) = read_config(folder)["custom_pipelines"].values()
    module, name = entry["impl"].split(".")
    assert f"class {name}(" in Path(folder, f"{module}.py").read_text()
    assert entry["pt"] == ["AutoModelForSeq2SeqLM"]
    assert "custom_pipelines" not in model.config.to_dict()


def test_a_checkpoint_names_every_auto_class(model, folder, tmp_path):
    modeling = "modeling_residual_lstm.ResidualLstm"
    assert read_config(folder)["auto_map"] == {
        "AutoConfig": "configuration_residual_lstm.ResidualLstmConfig",
        "AutoModel": f"{modeling}Model",
        "AutoModelForSeq2SeqLM": f"{modeling}ForConditionalGeneration",
    }
    model.base_model.save_pretrained(tmp_path)
    assert read_config(tmp_path)["auto_map"]["AutoModel"] == f"{modeling}Model"


def test_the_installed_package_asks_for_no_trust(folder):
    pipe = pipeline(TASK, model=folder)
    assert type(pipe) is hf_paraphrase.Text2TextGenerationPipeline
    assert type(pipe.model) is hf_paraphrase.ResidualLstmForConditionalGeneration
    assert type(pipeline(TASK, model=folder, trust_remote_code=True)) is type(pipe)


def test_saving_a_loaded_checkpoint_again_loses_nothing(folder, tmp_path):
    pipeline(TASK, model=folder).save_pretrained(tmp_path)
    assert read_config(tmp_path) == read_config(folder)
    assert {file.name for file in tmp_path.iterdir()} == set(os.listdir(folder))


def test_a_process_without_the_task_keeps_the_entry(folder, monkeypatch):
    from transformers.pipelines import PIPELINE_REGISTRY

    monkeypatch.delitem(PIPELINE_REGISTRY.supported_tasks, TASK)
    assert TASK in PortableConfig.from_dict(read_config(folder)).custom_pipelines


def test_without_the_package(folder, tmp_path):
    refusal, first, second = run_without_the_package(folder, TASK, TEXTS, tmp_path, max_new_tokens=6)
    assert "trust_remote_code=True" in refusal
    assert first == second == pipeline(TASK, model=folder)(TEXTS, max_new_tokens=6)
    assert read_config(tmp_path / "again") == read_config(folder)


def test_beam_search_without_the_package(folder, tmp_path):
    options = {"decoding": "beam", "num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 6}
    options |= {"output_scores": True, "no_repeat_ngram_size": 2}
    _, first, second = run_without_the_package(folder, TASK, TEXTS, tmp_path, **options)
    expected = pipeline(TASK, model=folder)(TEXTS, **options)
    assert first == second
    for texts, others in zip(first, expected, strict=True):
        assert [record["generated_text"] for record in texts] == [record["generated_text"] for record in others]
        assert [record["score"] for record in texts] == pytest.approx([record["score"] for record in others])
    assert "def beam_search(" in Path(folder, "search.py").read_text()


def test_diverse_decoding_without_the_package(folder, tmp_path):
    options = {"decoding": "dips", "num_return_sequences": 3, "max_new_tokens": 6}
    _, first, second = run_without_the_package(folder, TASK, TEXTS, tmp_path, **options)
    assert first == second == pipeline(TASK, model=folder)(TEXTS, **options)
