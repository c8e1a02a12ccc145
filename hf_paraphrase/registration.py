"""The architectures and their registration with transformers.

Registering imports transformers and torch, which takes seconds, and means nothing until somebody uses transformers.
So the later of the two imports does it: `import hf_paraphrase` if transformers is already imported, else transformers'
own import, once it is complete. What uses neither, such as `hf-paraphrase --help`, waits for neither.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .checkpoints.trust import close_question
from .released import find_checkpoint

if TYPE_CHECKING:
    from .models.layers.portable import PortableConfig, PortableModel


# What the names of classes end with, by the Auto class that loads them.
ENDINGS = {
    "AutoModel": "Model",
    "AutoModelForSeq2SeqLM": "ForConditionalGeneration",
    "AutoModelForSequenceClassification": "ForSequenceClassification",
}


@dataclass(frozen=True)
class Architecture:
    """An architecture; its configuration declares the abilities of its models.

    Its classes are called after it, `XConfig` and `XModel` for instance, and lie in `configuration_x.py`,
    `modeling_x.py` and, if it has its own tokenizer, `tokenization_x.py` of the folder `models/x`, where x is its
    `model_type`.

    Args:
        model_type: As `config.json` names it.
        heads: The Auto classes that load a model of it, of those in `ENDINGS`.
        has_tokenizer: Whether it has a tokenizer of its own.
    """

    model_type: str
    heads: tuple[str, ...]
    has_tokenizer: bool = False

    @property
    def name(self) -> str:
        """What the names of its classes begin with."""
        return "".join(map(str.capitalize, self.model_type.split("_")))

    @property
    def config(self) -> str:
        """The name of its configuration class."""
        return f"{self.name}Config"

    @property
    def models(self) -> dict[str, str]:
        """The names of its model classes, by the Auto class that loads each."""
        return {head: f"{self.name}{ENDINGS[head]}" for head in self.heads}

    @property
    def tokenizer(self) -> str | None:
        """The name of its tokenizer class; None where any tokenizer will do."""
        return f"{self.name}Tokenizer" if self.has_tokenizer else None

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


WRITES = ("AutoModel", "AutoModelForSeq2SeqLM")
MATCHES = "AutoModelForSequenceClassification"
ARCHITECTURES = (
    Architecture("coupled_lstm", ("AutoModel", MATCHES)),
    Architecture("pair_lstm", (MATCHES,)),
    Architecture("residual_lstm", WRITES),
    Architecture("fset", WRITES),
    Architecture("dnpg", WRITES),
    Architecture("edit_lstm", WRITES),
    Architecture("hierarchical_autoencoder", WRITES),
    Architecture("hierarchical_lm", WRITES, has_tokenizer=True),
    Architecture("ssru_transformer", WRITES),
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
