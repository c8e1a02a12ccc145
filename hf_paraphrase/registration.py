"""The architectures and their registration with transformers.

Registering imports transformers and torch, which takes seconds, and means nothing until somebody uses transformers.
So the later of the two imports does it: `import hf_paraphrase` if transformers is already imported, else transformers'
own import, once it is complete. What uses neither, such as `hf-paraphrase --help`, waits for neither.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .released import find_checkpoint
from .trust import close_question

if TYPE_CHECKING:
    from .models.layers.portable import PortableConfig, PortableModel


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """An architecture: its classes. Its configuration declares the abilities of its models.

    They are in `configuration_X.py`, `modeling_X.py` and, if it has its own tokenizer, `tokenization_X.py` of the
    folder `models/X`, where X is its `model_type`.

    Attributes:
        model_type: As `config.json` names it.
        config: Its configuration class.
        models: The model class that each of transformers' Auto classes loads.
        tokenizer: Its tokenizer class; None where any tokenizer will do.
    """

    model_type: str
    config: str
    models: Mapping[str, str] = field(default_factory=dict)
    tokenizer: str | None = None

    @property
    def modules(self) -> dict[str, str]:
        """The module of each of its classes, within this package."""
        kinds = dict.fromkeys(self.models.values(), "modeling") | {self.config: "configuration"}
        if self.tokenizer is not None:
            kinds[self.tokenizer] = "tokenization"
        return {name: f"models.{self.model_type}.{kind}_{self.model_type}" for name, kind in kinds.items()}

    @property
    def config_class(self) -> type[PortableConfig]:
        """The configuration class itself."""
        return self.load(self.config)

    @property
    def model_classes(self) -> dict[Any, type[PortableModel]]:
        """The model class itself that each Auto class loads."""
        import transformers

        return {getattr(transformers, auto): self.load(model) for auto, model in self.models.items()}

    def load(self, name: str) -> Any:
        """Import one of its classes."""
        return getattr(importlib.import_module(f".{self.modules[name]}", __package__), name)


ARCHITECTURES = (
    Architecture(
        model_type="coupled_lstm",
        config="CoupledLstmConfig",
        models={
            "AutoModel": "CoupledLstmModel",
            "AutoModelForSequenceClassification": "CoupledLstmForSequenceClassification",
        },
    ),
    Architecture(
        model_type="pair_lstm",
        config="PairLstmConfig",
        models={"AutoModelForSequenceClassification": "PairLstmForSequenceClassification"},
    ),
    Architecture(
        model_type="residual_lstm",
        config="ResidualLstmConfig",
        models={"AutoModel": "ResidualLstmModel", "AutoModelForSeq2SeqLM": "ResidualLstmForConditionalGeneration"},
    ),
    Architecture(
        model_type="fset",
        config="FsetConfig",
        models={"AutoModel": "FsetModel", "AutoModelForSeq2SeqLM": "FsetForConditionalGeneration"},
    ),
    Architecture(
        model_type="dnpg",
        config="DnpgConfig",
        models={"AutoModel": "DnpgModel", "AutoModelForSeq2SeqLM": "DnpgForConditionalGeneration"},
    ),
    Architecture(
        model_type="edit_lstm",
        config="EditLstmConfig",
        models={"AutoModel": "EditLstmModel", "AutoModelForSeq2SeqLM": "EditLstmForConditionalGeneration"},
    ),
    Architecture(
        model_type="hierarchical_autoencoder",
        config="HierarchicalAutoencoderConfig",
        models={
            "AutoModel": "HierarchicalAutoencoderModel",
            "AutoModelForSeq2SeqLM": "HierarchicalAutoencoderForConditionalGeneration",
        },
    ),
    Architecture(
        model_type="hierarchical_lm",
        config="HierarchicalLmConfig",
        models={"AutoModel": "HierarchicalLmModel", "AutoModelForSeq2SeqLM": "HierarchicalLmForConditionalGeneration"},
        tokenizer="HierarchicalLmTokenizer",
    ),
    Architecture(
        model_type="ssru_transformer",
        config="SsruTransformerConfig",
        models={
            "AutoModel": "SsruTransformerModel",
            "AutoModelForSeq2SeqLM": "SsruTransformerForConditionalGeneration",
        },
    ),
)


def register_with_transformers() -> None:
    """Register the package's architectures now if transformers is imported, and else when it is."""
    if "transformers" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, TransformersFinder())


def register() -> None:
    """Make transformers' Auto classes and `pipeline("text2text-generation")` find what this package has.

    It also keeps transformers from asking on standard input whether a checkpoint's code may run.

    `register_with_transformers` says when it is called; calling it again changes nothing.
    """
    from transformers import AutoConfig, AutoTokenizer

    for row in ARCHITECTURES:
        config_class = row.config_class
        AutoConfig.register(row.model_type, config_class, exist_ok=True)
        # Saving then puts the code beside the weights, for `trust_remote_code=True`.
        config_class.saved_as = "AutoConfig"
        for auto_class, model_class in row.model_classes.items():
            auto_class.register(config_class, model_class, exist_ok=True)
            model_class.saved_as = auto_class.__name__
        if row.tokenizer is not None:
            tokenizer_class = row.load(row.tokenizer)
            AutoTokenizer.register(config_class, tokenizer_class, exist_ok=True)
            tokenizer_class.saved_as = "AutoTokenizer"
    register_pipeline()
    close_question()


def register_pipeline() -> None:
    """Bring back the task that transformers 5 dropped; where it exists, as in transformers 4, leave it alone."""
    from transformers import AutoModelForSeq2SeqLM, pipelines

    from .models.search.pipeline_text2text import Text2TextGenerationPipeline

    tasks = pipelines.PIPELINE_REGISTRY.supported_tasks
    if "text2text-generation" in tasks:
        return
    # As a built-in task is: after `PIPELINE_REGISTRY.register_pipeline`, saving the pipeline of any T5 would copy our
    # code beside it, and make `pipeline()` ask for `trust_remote_code=True` to load it again.
    tasks["text2text-generation"] = {
        "impl": Text2TextGenerationPipeline,
        "pt": (AutoModelForSeq2SeqLM,),
        "default": ReleasedModel(model=None),
        "type": "text",
    }
    # `pipeline()` refuses these before it checks the registry; early releases of transformers 5 have no such list.
    getattr(pipelines, "REMOVED_TASKS", {}).pop("text2text-generation", None)


class ReleasedModel(dict):
    """Takes the place of a task's default model and revision in `pipeline()`; unpacks it on first use."""

    def __getitem__(self, name: str) -> Any:
        return find_checkpoint(), "main"


class TransformersFinder(MetaPathFinder):
    """Finds transformers as the other finders do, and adds to its loader what follows on the import.

    The parent package is imported before any of its modules, so that nothing of transformers is half imported then.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "transformers":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                sys.meta_path.remove(self)
                register()

            loader.exec_module = load_and_register
        return spec
