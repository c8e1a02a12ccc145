"""Base classes of models that write text: their checkpoints bring the text2text pipeline too."""

from __future__ import annotations

import os
from typing import Any

from .portable import PortableConfig, PortableModel

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


class WritingModel(PortableModel):
    """Mixin, before a family's base class, for encoder-decoders: the checkpoint brings the text2text pipeline too."""

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save the model as `PortableModel` does, and name the pipeline in its `config.json`."""
        # Imported here, since `search` imports layers. transformers copies what a module imports, wherever it does so.
        from ..search.pipeline_text2text import Text2TextGenerationPipeline

        # Its file in a checkpoint, see `bundle.py`.
        implementation = f"search.{Text2TextGenerationPipeline.__name__}"
        self.config.custom_pipelines = {
            TASK: {"impl": implementation, "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}
        }
        try:
            super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            del self.config.custom_pipelines
