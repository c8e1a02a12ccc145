from __future__ import annotations

from typing import Any

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    pipelines,
)

from .errors import InputError
from .models.configuration_coupled_lstm import CoupledLstmConfig
from .models.configuration_edit_lstm import EditLstmConfig
from .models.configuration_fset import FsetConfig
from .models.configuration_hierarchical_autoencoder import HierarchicalAutoencoderConfig
from .models.configuration_hierarchical_lm import HierarchicalLmConfig
from .models.configuration_pair_lstm import PairLstmConfig
from .models.configuration_residual_lstm import ResidualLstmConfig
from .models.modeling_coupled_lstm import CoupledLstmForSequenceClassification, CoupledLstmModel
from .models.modeling_edit_lstm import EditLstmForConditionalGeneration, EditLstmModel
from .models.modeling_fset import FsetForConditionalGeneration, FsetModel
from .models.modeling_hierarchical_autoencoder import (
    HierarchicalAutoencoderForConditionalGeneration,
    HierarchicalAutoencoderModel,
)
from .models.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration, HierarchicalLmModel
from .models.modeling_pair_lstm import PairLstmForSequenceClassification
from .models.modeling_residual_lstm import ResidualLstmForConditionalGeneration, ResidualLstmModel
from .models.pipeline_text2text import Text2TextGenerationPipeline
from .models.tokenization_hierarchical_lm import HierarchicalLmTokenizer

__all__ = ["ARCHITECTURES", "register"]

# Every architecture's configuration, with the model class that each Auto class loads for it.
ARCHITECTURES: dict[type[PreTrainedConfig], dict[type, type[PreTrainedModel]]] = {
    CoupledLstmConfig: {
        AutoModel: CoupledLstmModel,
        AutoModelForSequenceClassification: CoupledLstmForSequenceClassification,
    },
    PairLstmConfig: {AutoModelForSequenceClassification: PairLstmForSequenceClassification},
    ResidualLstmConfig: {
        AutoModel: ResidualLstmModel,
        AutoModelForSeq2SeqLM: ResidualLstmForConditionalGeneration,
    },
    FsetConfig: {AutoModel: FsetModel, AutoModelForSeq2SeqLM: FsetForConditionalGeneration},
    EditLstmConfig: {AutoModel: EditLstmModel, AutoModelForSeq2SeqLM: EditLstmForConditionalGeneration},
    HierarchicalAutoencoderConfig: {
        AutoModel: HierarchicalAutoencoderModel,
        AutoModelForSeq2SeqLM: HierarchicalAutoencoderForConditionalGeneration,
    },
    HierarchicalLmConfig: {
        AutoModel: HierarchicalLmModel,
        AutoModelForSeq2SeqLM: HierarchicalLmForConditionalGeneration,
    },
}


class NoDefaultModel(dict):
    """Stands where `pipeline()` looks up a task's default model, and says that this task has none."""

    def __getitem__(self, name: str) -> Any:
        raise InputError("text2text-generation has no default model: pass `model=` a folder or a Hub repository")


def register() -> None:
    """Make transformers' Auto classes and `pipeline("text2text-generation")` find what this package has.

    Importing this module calls it (`deferred` says when that is); calling it again changes nothing.
    """
    for config_class, model_classes in ARCHITECTURES.items():
        AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
        config_class.register_for_auto_class()
        for auto_class, model_class in model_classes.items():
            auto_class.register(config_class, model_class, exist_ok=True)
            # Saving then puts the code beside the weights, for `trust_remote_code=True`.
            model_class.register_for_auto_class(auto_class)
    AutoTokenizer.register(HierarchicalLmConfig, HierarchicalLmTokenizer, exist_ok=True)
    HierarchicalLmTokenizer.register_for_auto_class()
    register_pipeline()


def register_pipeline() -> None:
    """Bring back the task that transformers 5 dropped; where it exists, as in transformers 4, leave it alone."""
    tasks = pipelines.PIPELINE_REGISTRY.supported_tasks
    if "text2text-generation" in tasks:
        return
    # As a built-in task is: after `PIPELINE_REGISTRY.register_pipeline`, saving the pipeline of any T5 would copy our
    # code beside it, and make `pipeline()` ask for `trust_remote_code=True` to load it again.
    tasks["text2text-generation"] = {
        "impl": Text2TextGenerationPipeline,
        "pt": (AutoModelForSeq2SeqLM,),
        "default": NoDefaultModel(model=None),
        "type": "text",
    }
    # `pipeline()` refuses these before it asks the registry; early releases of transformers 5 have no such list.
    getattr(pipelines, "REMOVED_TASKS", {}).pop("text2text-generation", None)


register()
