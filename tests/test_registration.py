from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import transformers
from transformers import AutoConfig, BartConfig
from transformers.pipelines import PIPELINE_REGISTRY

import hf_paraphrase
from hf_paraphrase.models.layers.portable import PortableConfig, can
from hf_paraphrase.models.layers.sentence_pair import SentencePairPreTrainedModel
from hf_paraphrase.models.search.embedding_paraphraser import EmbeddingParaphraser
from hf_paraphrase.registration import ARCHITECTURES, register, register_pipeline
from tests.models.tiny import tiny_model

TASK = "text2text-generation"
# Early releases of transformers 5 have no such list.
REMOVED_TASKS = getattr(transformers.pipelines, "REMOVED_TASKS", None)
with_removed_tasks = pytest.mark.skipif(REMOVED_TASKS is None, reason="this transformers lists no removed tasks")
every_architecture = pytest.mark.parametrize("row", ARCHITECTURES, ids=lambda row: row.model_type)
# What others rely on; a new row adds its own.
PUBLIC_NAMES = [
    "CoupledLstmConfig",
    "CoupledLstmForSequenceClassification",
    "CoupledLstmModel",
    "DnpgConfig",
    "DnpgForConditionalGeneration",
    "DnpgModel",
    "EditLstmConfig",
    "EditLstmForConditionalGeneration",
    "EditLstmModel",
    "FsetConfig",
    "FsetForConditionalGeneration",
    "FsetModel",
    "HierarchicalAutoencoderConfig",
    "HierarchicalAutoencoderForConditionalGeneration",
    "HierarchicalAutoencoderModel",
    "HierarchicalLmConfig",
    "HierarchicalLmForConditionalGeneration",
    "HierarchicalLmModel",
    "HierarchicalLmTokenizer",
    "PairLstmConfig",
    "PairLstmForSequenceClassification",
    "Paraphrase",
    "ParaphraseRetriever",
    "Paraphraser",
    "ResidualLstmConfig",
    "ResidualLstmForConditionalGeneration",
    "ResidualLstmModel",
    "SsruTransformerConfig",
    "SsruTransformerForConditionalGeneration",
    "SsruTransformerModel",
    "Text2TextGenerationPipeline",
    "dataset_card",
    "list_datasets",
    "list_metrics",
    "load_dataset",
    "load_metric",
    "register",
    "train_word_tokenizer",
]


@every_architecture
def test_auto_classes_know_every_architecture(row):
    config = AutoConfig.for_model(row.model_type)
    assert type(config) is row.config_class and row.config_class.model_type == row.model_type
    assert list(row.models) == [auto_class.__name__ for auto_class in row.model_classes]
    for auto_class, model_class in row.model_classes.items():
        assert auto_class._model_mapping[row.config_class] is model_class
        assert model_class.config_class is row.config_class
        assert hf_paraphrase.__getattr__(model_class.__name__) is model_class


@every_architecture
def test_a_configuration_tells_what_its_models_do(row):
    head = list(row.model_classes.values())[-1]
    model = tiny_model(row.config_class, head)
    assert issubclass(row.config_class, PortableConfig)
    arguments, fields = inspect.signature(model.forward).parameters, model.config.to_dict()
    assert can(model.config, "reads_pairs") == ("retrieved_source_ids" in arguments)
    assert can(model.config, "has_levels") == ("source_levels" in arguments)
    assert can(model.config, "embeds_sentences") == isinstance(model, EmbeddingParaphraser)
    assert can(model.config, "labels_pairs") == isinstance(model, SentencePairPreTrainedModel)
    assert "abilities" not in fields
    for copies in (False, True) if "copy" in fields else ():
        model.config.copy = copies
        assert can(model.config, "copies_words") == copies
    assert ("copies_words" in row.config_class.abilities) == ("copy" in fields)


def test_other_models_do_none_of_it():
    """Whatever stands in `config.json`."""
    config = BartConfig(copy=True, abilities=["reads_pairs"])
    abilities = frozenset().union(*(row.config_class.abilities for row in ARCHITECTURES))
    assert len(abilities) == 6 and not any(can(config, ability) for ability in abilities)
    config.architectures = ["BartForSequenceClassification"]
    assert [ability for ability in abilities if can(config, ability)] == ["labels_pairs"]


def test_no_family_is_without_its_row():
    """It would be neither registered nor public."""
    files = Path(hf_paraphrase.__file__).parent.glob("models/*/modeling_*.py")
    assert {file.stem.removeprefix("modeling_") for file in files} == {row.model_type for row in ARCHITECTURES}


@every_architecture
def test_the_paper_index_names_every_architecture(row):
    index = Path(__file__).parents[1] / "model_cards" / "PAPERS.md"
    assert f"`{row.model_type}`" in index.read_text(encoding="utf-8")


def test_the_task_is_back():
    implementation = PIPELINE_REGISTRY.check_task(TASK)[1]["impl"]
    assert implementation is hf_paraphrase.Text2TextGenerationPipeline


@with_removed_tasks
def test_the_task_is_no_removed_one():
    assert TASK not in REMOVED_TASKS
    assert "summarization" in REMOVED_TASKS


def test_registering_again_changes_nothing(recwarn):
    before = PIPELINE_REGISTRY.supported_tasks[TASK]
    register()
    assert PIPELINE_REGISTRY.supported_tasks[TASK] is before
    assert not recwarn.list


@with_removed_tasks
def test_a_task_that_exists_is_left_alone(monkeypatch):
    monkeypatch.setitem(PIPELINE_REGISTRY.supported_tasks, TASK, "of somebody else")
    monkeypatch.setitem(REMOVED_TASKS, TASK, "gone")
    register_pipeline()
    assert PIPELINE_REGISTRY.supported_tasks[TASK] == "of somebody else"
    assert TASK in REMOVED_TASKS


def test_a_release_without_the_list_of_removed_tasks(monkeypatch):
    monkeypatch.delitem(PIPELINE_REGISTRY.supported_tasks, TASK)
    monkeypatch.delattr(transformers.pipelines, "REMOVED_TASKS", raising=False)
    register_pipeline()
    assert TASK in PIPELINE_REGISTRY.supported_tasks


def test_public_names():
    assert hf_paraphrase.__all__ == sorted(hf_paraphrase.__all__)
    assert set(PUBLIC_NAMES) <= set(hf_paraphrase.__all__)
    assert set(hf_paraphrase.MODULES) == set(hf_paraphrase.__all__) <= set(dir(hf_paraphrase))
    for name in hf_paraphrase.__all__:
        assert getattr(hf_paraphrase, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        hf_paraphrase.no_such_name  # noqa: B018 - the access is the test


def test_editors_are_told_of_what_no_row_tells():
    (block,) = (node for node in ast.parse(inspect.getsource(hf_paraphrase)).body if isinstance(node, ast.If))
    told = {alias.asname: node.module for node in block.body for alias in node.names}
    of_rows = {name for row in ARCHITECTURES for name in row.modules}
    assert told == {name: module for name, module in hf_paraphrase.MODULES.items() if name not in of_rows}


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
        "import hf_paraphrase.models.fset.modeling_fset; from transformers import AutoConfig, pipelines",
        "from hf_paraphrase.registration import register; from transformers import AutoConfig, pipelines",
        "import hf_paraphrase; hf_paraphrase.register(); from transformers import AutoConfig, pipelines",
        "import hf_paraphrase; hf_paraphrase.register; from transformers import AutoConfig, pipelines",
        # Libraries that ask whether transformers is installed do not import it.
        "import hf_paraphrase, importlib.util; importlib.util.find_spec('transformers')\n"
        "from transformers import AutoConfig, pipelines",
    ],
)
def test_the_later_import_registers(code):
    asked = "print(type(AutoConfig.for_model('fset')).__module__, pipelines.check_task('text2text-generation')[0])"
    assert run(f"{code}\n{asked}") == ["hf_paraphrase.models.fset.configuration_fset", "text2text-generation"]
