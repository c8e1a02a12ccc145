"""What lets a saved checkpoint run where this package is not installed: its pipeline travels with its code."""

from __future__ import annotations

import os
from typing import Any

from transformers import PreTrainedConfig

from .auto_map import AutoMappedModel

__all__ = ["PortableConfig", "PortableModel"]

TASK = "text2text-generation"


class PortableConfig(PreTrainedConfig):
    """Base of the configurations of models that derive from `PortableModel`."""

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any):
        """Make a configuration, without the checkpoint's own pipeline where the process has the task anyway.

        `pipeline()` demands `trust_remote_code=True` for every checkpoint that names a pipeline of its own, even if
        the code would not be needed.
        """
        from transformers.pipelines import PIPELINE_REGISTRY

        if TASK in PIPELINE_REGISTRY.supported_tasks:
            config_dict = {name: value for name, value in config_dict.items() if name != "custom_pipelines"}
        return super().from_dict(config_dict, **kwargs)


class PortableModel(AutoMappedModel):
    """Mixin, before `PreTrainedModel`, for encoder-decoders whose checkpoints bring the text2text pipeline.

    Saving a model that is registered for an Auto class copies its module and, through the imports below, this one and
    the pipeline's. All that is missing is the entry in `config.json`.
    """

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save the model as `PreTrainedModel.save_pretrained` does, and name the pipeline in its `config.json`."""
        from ..search.pipeline_text2text import Text2TextGenerationPipeline as pipeline

        implementation = f"{pipeline.__module__.rpartition('.')[2]}.{pipeline.__name__}"
        self.config.custom_pipelines = {
            TASK: {"impl": implementation, "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}
        }
        try:
            super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            del self.config.custom_pipelines
