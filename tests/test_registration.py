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
    assert set(hf_paraphrase.MODULES) == set(hf_paraphrase.__all__) <= set(dir(hf_paraphrase))
    for name in hf_paraphrase.__all__:
        assert getattr(hf_paraphrase, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        hf_paraphrase.no_such_name  # noqa: B018 - the access is the test


def run(code: str) -> list[str]:
    """The words that a fresh process prints."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_the_import_is_light():
    loaded = set(run("import hf_paraphrase, sys; print(*{name.partition('.')[0] for name in sys.modules})"))
    assert "hf_paraphrase" in loaded
    heavy = {"transformers", "torch", "faiss", "evaluate", "datasets", "sentence_transformers", "matplotlib"}
    assert not loaded & (heavy | {"sacrebleu"})


@pytest.mark.parametrize(
    "code",
    [
        "import hf_paraphrase; from transformers import AutoConfig, pipelines",
        "from transformers import AutoConfig, pipelines; import hf_paraphrase",
        "import hf_paraphrase, transformers.models.bart.modeling_bart; from transformers import AutoConfig, pipelines",
        # Each of these is half imported when it imports transformers.
        "from hf_paraphrase.models.modeling_fset import FsetModel; from transformers import AutoConfig, pipelines",
        "from hf_paraphrase.registration import register; from transformers import AutoConfig, pipelines",
        "import hf_paraphrase; hf_paraphrase.register; from transformers import AutoConfig, pipelines",
        # Libraries that ask whether transformers is installed do not import it.
        "import hf_paraphrase, importlib.util; importlib.util.find_spec('transformers')\n"
        "from transformers import AutoConfig, pipelines",
    ],
)
def test_the_later_import_registers(code):
    asked = "print(type(AutoConfig.for_model('fset')).__module__, pipelines.check_task('text2text-generation')[0])"
    assert run(f"{code}\n{asked}") == ["hf_paraphrase.models.configuration_fset", "text2text-generation"]
