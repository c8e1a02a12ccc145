"""Base classes whose checkpoints bring their own code, and so run where this package is not installed."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from transformers import PreTrainedConfig, PreTrainedModel


class PortableCode:
    """Mixin of configurations, models and tokenizers: saving one of this package writes the code of its family.

    The code of a checkpoint that was loaded with `trust_remote_code=True` is copied by transformers.
    """

    # The Auto class that loads it, set by registration. A subclass outside of the package has code of its own.
    saved_as: ClassVar[str | None] = None

    @classmethod
    def is_of_package(cls) -> bool:
        """Whether saving has to write the code."""
        return vars(cls).get("saved_as") is not None

    @classmethod
    def reference(cls) -> str:
        """The class as `auto_map` names it: all code of a checkpoint is in one folder."""
        return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"

    def save_code(self, folder: str | os.PathLike) -> None:
        """Write the code of the family, unless the class comes from a checkpoint or a subclass."""
        if self.is_of_package():
            # In `try`, or transformers would demand that package of whoever loads this file from a checkpoint.
            try:
                from hf_paraphrase.models.bundle import write_family
            except ImportError:
                return
            write_family(type(self).__module__.split(".")[-2], folder)


class PortableConfig(PortableCode, PreTrainedConfig):
    """Base of the configurations of this package."""

    # What models with this configuration can do:
    # copies_words: copy words of the retrieved pair, or of the source, those outside the vocabulary too, with `copy`
    # embeds_sentences: they are an `EmbeddingParaphraser`
    # has_levels: tell words of phrases from those of the template, and keep either
    # labels_pairs: label or score pairs of sentences
    # reads_pairs: edit the input by a retrieved pair
    # rewrites_documents: write a document again from the document's vector
    abilities: ClassVar[frozenset[str]] = frozenset()

    # Options of earlier versions, each with the one value that today's models compute.
    former_options: ClassVar[dict[str, Any]] = {}

    def __post_init__(self, **kwargs: Any) -> None:
        for name, value in self.former_options.items():
            given = kwargs.pop(name, value)
            if given != value:
                raise ValueError(f"`{name}` can no longer be {given!r}: models with it need hf-paraphrase 0.1.0")
        super().__post_init__(**kwargs)

    def check_sizes(self, *names: str) -> None:
        """Raise ValueError for a field below 1."""
        for name in names:
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, not {getattr(self, name)}")

    def check_dropout(self, *names: str) -> None:
        """Raise ValueError for a field that is no probability of dropping."""
        for name in names:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be in [0, 1), not {getattr(self, name)}")

    def check_width(self, width: str, *heads: str) -> None:
        """Raise ValueError for a width without room for sines and cosines, or that heads do not divide."""
        size = getattr(self, width)
        if size % 2:
            raise ValueError(f"`{width}` holds sines and cosines: it must be even, not {size}")
        for name in heads:
            if size % getattr(self, name):
                raise ValueError(f"`{name}` ({getattr(self, name)}) must divide `{width}` ({size})")

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save as `PreTrainedConfig.save_pretrained` does, with the code of the family."""
        if self.is_of_package():
            self.auto_map = (getattr(self, "auto_map", None) or {}) | {"AutoConfig": self.reference()}
        self.save_code(save_directory)
        super().save_pretrained(save_directory, *args, **kwargs)


class PortableModel(PortableCode, PreTrainedModel):
    """Base of the models of this package: a saved model names every Auto class that loads it or its body.

    Saving a model saves its configuration, which brings the code.
    """

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save as `PreTrainedModel.save_pretrained` does, with every Auto class in `config.json`.

        transformers writes the one Auto class into `auto_map` that a model was registered for; without this,
        `AutoModel.from_pretrained(..., trust_remote_code=True)` finds no code in the checkpoint of a model with a
        head.
        """
        auto_map, body = {}, self.base_model
        if self.is_of_package():
            auto_map[self.saved_as] = self.reference()
        if body is not self and isinstance(body, PreTrainedModel) and (auto_map or self._auto_class is not None):
            module = type(body).__module__.rpartition(".")[2]
            auto_map["AutoModel"] = f"{module}.{type(body).__name__}"
        if auto_map:
            self.config.auto_map = (getattr(self.config, "auto_map", None) or {}) | auto_map
        super().save_pretrained(save_directory, *args, **kwargs)


class PortableTokenizer(PortableCode):
    """Mixin, before `PreTrainedTokenizer`, for the tokenizer that a family has for itself."""

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        """Save as `PreTrainedTokenizer.save_pretrained` does, with the code of the family."""
        if self.is_of_package():
            # Two classes: the one in Python, and a fast one.
            self.init_kwargs["auto_map"] = {"AutoTokenizer": [self.reference(), None]}
        self.save_code(save_directory)
        return super().save_pretrained(save_directory, *args, **kwargs)


def can(config: PreTrainedConfig, ability: str) -> bool:
    """Whether a model has an ability, by its configuration, on the Hub too.

    Args:
        config: Any model's; models of other libraries can at most label pairs.
        ability: One of `PortableConfig.abilities`.
    """
    abilities = getattr(type(config), "abilities", None)
    if abilities is None:
        heads = config.architectures or []
        return ability == "labels_pairs" and any(name.endswith("ForSequenceClassification") for name in heads)
    return ability in abilities and (ability != "copies_words" or config.copy)


TASK = "text2text-generation"


class WritingConfig(PortableConfig):
    """Base of the configurations of models that write text, with the marks of the tokenizers trained here."""

    use_cache: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 1
    is_encoder_decoder: bool = True

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any):
        """Make a configuration, without the checkpoint's own pipeline where the process has the task anyway.

        `pipeline()` demands `trust_remote_code=True` for every checkpoint that names its own pipeline, even if the
        code is not needed.
        """
        from transformers.pipelines import PIPELINE_REGISTRY

        if TASK in PIPELINE_REGISTRY.supported_tasks:
            config_dict = {name: value for name, value in config_dict.items() if name != "custom_pipelines"}
        return super().from_dict(config_dict, **kwargs)
