from __future__ import annotations

import subprocess
import sys

import pytest
import transformers
from transformers import AutoConfig, pipeline
from transformers.pipelines import PIPELINE_REGISTRY, REMOVED_TASKS

import hf_paraphrase
from hf_paraphrase.errors import InputError
from hf_paraphrase.registration import ARCHITECTURES, register, register_pipeline

TASK = "text2text-generation"


@pytest.mark.parametrize("config_class", ARCHITECTURES, ids=lambda config_class: config_class.model_type)
def test_auto_classes_know_every_architecture(config_class):
    config = AutoConfig.for_model(config_class.model_type)
    assert type(config) is config_class
    for auto_class, model_class in ARCHITECTURES[config_class].items():
        assert auto_class._model_mapping[config_class] is model_class
        assert model_class.config_class is config_class
        assert hf_paraphrase.__getattr__(model_class.__name__) is model_class


def test_the_task_is_back():
    implementation = PIPELINE_REGISTRY.check_task(TASK)[1]["impl"]
    assert implementation is hf_paraphrase.Text2TextGenerationPipeline
    assert TASK not in REMOVED_TASKS
    assert "summarization" in REMOVED_TASKS


def test_registering_again_changes_nothing(recwarn):
    before = PIPELINE_REGISTRY.supported_tasks[TASK]
    register()
    assert PIPELINE_REGISTRY.supported_tasks[TASK] is before
    assert not recwarn.list


def test_a_task_that_exists_is_left_alone(monkeypatch):
    monkeypatch.setitem(PIPELINE_REGISTRY.supported_tasks, TASK, "of somebody else")
    monkeypatch.setitem(REMOVED_TASKS, TASK, "gone")
    register_pipeline()
    assert PIPELINE_REGISTRY.supported_tasks[TASK] == "of somebody else"
    assert TASK in REMOVED_TASKS


def test_a_release_without_the_list_of_removed_tasks(monkeypatch):
    monkeypatch.delitem(PIPELINE_REGISTRY.supported_tasks, TASK)
    monkeypatch.delattr(transformers.pipelines, "REMOVED_TASKS")
    register_pipeline()
    assert TASK in PIPELINE_REGISTRY.supported_tasks


def test_no_default_model():
    with pytest.raises(InputError, match="no default model: pass `model=`"):
        pipeline(TASK)


def test_public_names():
    assert hf_paraphrase.__all__ == sorted(hf_paraphrase.__all__)
    assert set(hf_paraphrase.MODULES) | {"register"} == set(hf_paraphrase.__all__) <= set(dir(hf_paraphrase))
    for name in hf_paraphrase.__all__:
        assert getattr(hf_paraphrase, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        hf_paraphrase.no_such_name  # noqa: B018 - the access is the test


def test_the_import_is_light():
    code = "import hf_paraphrase, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert {"hf_paraphrase", "transformers", "torch"} <= loaded
    assert not loaded & {"faiss", "evaluate", "datasets", "sentence_transformers", "matplotlib", "sacrebleu"}
