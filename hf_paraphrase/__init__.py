"""Research models of paraphrasing as first-class citizens of the Hugging Face ecosystem.

Importing this package registers its models with transformers' Auto classes and brings the `text2text-generation`
pipeline back, as soon as transformers is imported too. Its public names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .deferred import register_with_transformers

if TYPE_CHECKING:
    from .datasets import dataset_card, list_datasets, load_dataset
    from .metrics import list_metrics, load_metric
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
    from .registration import register
    from .retrieval import ParaphraseRetriever
    from .tokenization import train_word_tokenizer

__version__ = "0.1.0"

__all__ = [
    "CoupledLstmConfig",
    "CoupledLstmForSequenceClassification",
    "CoupledLstmModel",
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
    "ParaphraseRetriever",
    "ResidualLstmConfig",
    "ResidualLstmForConditionalGeneration",
    "ResidualLstmModel",
    "Text2TextGenerationPipeline",
    "dataset_card",
    "list_datasets",
    "list_metrics",
    "load_dataset",
    "load_metric",
    "register",
    "train_word_tokenizer",
]

# The module of every public name that is loaded on demand.
MODULES = {
    "CoupledLstmConfig": "models.configuration_coupled_lstm",
    "CoupledLstmForSequenceClassification": "models.modeling_coupled_lstm",
    "CoupledLstmModel": "models.modeling_coupled_lstm",
    "EditLstmConfig": "models.configuration_edit_lstm",
    "EditLstmForConditionalGeneration": "models.modeling_edit_lstm",
    "EditLstmModel": "models.modeling_edit_lstm",
    "FsetConfig": "models.configuration_fset",
    "FsetForConditionalGeneration": "models.modeling_fset",
    "FsetModel": "models.modeling_fset",
    "HierarchicalAutoencoderConfig": "models.configuration_hierarchical_autoencoder",
    "HierarchicalAutoencoderForConditionalGeneration": "models.modeling_hierarchical_autoencoder",
    "HierarchicalAutoencoderModel": "models.modeling_hierarchical_autoencoder",
    "HierarchicalLmConfig": "models.configuration_hierarchical_lm",
    "HierarchicalLmForConditionalGeneration": "models.modeling_hierarchical_lm",
    "HierarchicalLmModel": "models.modeling_hierarchical_lm",
    "HierarchicalLmTokenizer": "models.tokenization_hierarchical_lm",
    "PairLstmConfig": "models.configuration_pair_lstm",
    "PairLstmForSequenceClassification": "models.modeling_pair_lstm",
    "ParaphraseRetriever": "retrieval",
    "ResidualLstmConfig": "models.configuration_residual_lstm",
    "ResidualLstmForConditionalGeneration": "models.modeling_residual_lstm",
    "ResidualLstmModel": "models.modeling_residual_lstm",
    "Text2TextGenerationPipeline": "models.pipeline_text2text",
    "dataset_card": "datasets",
    "list_datasets": "datasets",
    "list_metrics": "metrics",
    "load_dataset": "datasets",
    "load_metric": "metrics",
    "register": "registration",
    "train_word_tokenizer": "tokenization",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_with_transformers()
