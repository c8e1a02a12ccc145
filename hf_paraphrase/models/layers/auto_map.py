from __future__ import annotations

import os
from typing import Any

from transformers import PreTrainedModel

__all__ = ["AutoMappedModel"]


class AutoMappedModel:
    """Mixin, before `PreTrainedModel`: a saved model with a head names its body's class for `AutoModel` too.

    transformers writes the one Auto class into `auto_map` that a model was registered for; without this,
    `AutoModel.from_pretrained(..., trust_remote_code=True)` finds no code in the checkpoint of a model with a head.
    """

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save the model as `PreTrainedModel.save_pretrained` does, with every Auto class in its `config.json`."""
        body = self.base_model
        if body is not self and isinstance(body, PreTrainedModel) and self._auto_class is not None:
            # All files of a checkpoint's code lie in one folder: of the module's name, the last part counts.
            module = type(body).__module__.rpartition(".")[2]
            written = getattr(self.config, "auto_map", None) or {}
            self.config.auto_map = written | {"AutoModel": f"{module}.{type(body).__name__}"}
        super().save_pretrained(save_directory, *args, **kwargs)
