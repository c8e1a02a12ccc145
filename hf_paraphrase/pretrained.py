"""The one door to checkpoints: all that anybody names is loaded here, and runs no code unless the user said so.

Without an answer, transformers asks on standard input whether the code of a checkpoint may run, and would take the
user's own texts for it. So it is always told. Weights are read from safetensors alone, since those of a pickle are a
program too; a folder may not lead elsewhere, by symbolic links or by the index of its weights.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from .checks import whole_number
from .errors import InputError
from .files import check_links

__all__ = [
    "choose_device",
    "load_config",
    "load_model",
    "load_pipeline",
    "load_tokenizer",
    "make_model",
    "read_config",
]


def load_model(
    auto_class: type, path: str | os.PathLike, trust_remote_code: bool = False, **kwargs: Any
) -> PreTrainedModel:
    """Load a model.

    Args:
        auto_class: What loads it, such as `AutoModelForSeq2SeqLM`.
        path: A checkpoint folder or Hub repository.
        trust_remote_code: Let the code beside the weights run, and read weights that are a pickle.
        kwargs: Further arguments of `from_pretrained`.

    Raises:
        InputError: It needs code of its own, which is not trusted, or the folder leads elsewhere.
        OSError: There is no such model.
        ValueError: It is none of that class.
    """
    with _trusting(path, trust_remote_code):
        return auto_class.from_pretrained(
            path,
            trust_remote_code=trust_remote_code,
            use_safetensors=None if trust_remote_code else True,
            **kwargs,
        )


def load_tokenizer(path: str | os.PathLike, trust_remote_code: bool = False, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Load a tokenizer; arguments and errors as those of `load_model`."""
    with _trusting(path, trust_remote_code):
        return AutoTokenizer.from_pretrained(path, trust_remote_code=trust_remote_code, **kwargs)


def load_config(path: str | os.PathLike, trust_remote_code: bool = False) -> PreTrainedConfig:
    """Load a model's configuration; arguments and errors as those of `load_model`."""
    with _trusting(path, trust_remote_code):
        return AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)


def choose_device(device: str | int | torch.device | None = None) -> torch.device:
    """Return a device of this machine.

    Args:
        device: As torch takes it, or -1 for the CPU, as pipelines take it; None for the GPU where there is one.

    Raises:
        InputError: There is no such device.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == -1:
        return torch.device("cpu")
    try:
        # A number names a GPU; torch only looks for it when a tensor is put there.
        found = torch.device(whole_number("device", device) if isinstance(device, Integral) else device)
        torch.empty(0, device=found)
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"`device`: this machine has no {device!r} ({reason}); -1 or 'cpu' is the CPU") from error
    return found


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """A checkpoint's `config.json`, read without running code; empty where there is none: loading says so better."""
    try:
        return PreTrainedConfig.get_config_dict(path)[0]
    except (OSError, ValueError):
        return {}


def load_pipeline(
    task: str, auto_class: type, path: str | os.PathLike, trust_remote_code: bool = False, **kwargs: Any
) -> transformers.Pipeline:
    """Load a model with its tokenizer as a pipeline; arguments and errors as those of `load_model`."""
    model, tokenizer = load_model(auto_class, path, trust_remote_code), load_tokenizer(path, trust_remote_code)
    return transformers.pipeline(task, model=model, tokenizer=tokenizer, trust_remote_code=trust_remote_code, **kwargs)


def make_model(auto_class: type, config: PreTrainedConfig, trust_remote_code: bool = False) -> PreTrainedModel:
    """Make a model with new weights; of its configuration too, the code that it names runs only where trusted."""
    with _trusting(config.name_or_path, trust_remote_code):
        return auto_class.from_config(config, trust_remote_code=trust_remote_code)


def _check_shards(folder: Path) -> None:
    """Refuse an index of weights that names files elsewhere, which transformers would read."""
    for index in folder.glob("*.index.json"):
        try:
            content = json.loads(index.read_text(encoding="utf-8"))
            names, _ = set(content["weight_map"].values()), dict(content["metadata"])
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InputError(f"{index} is no index of weights: {error!r:.100}") from error
        for name in names:
            if not isinstance(name, str) or Path(name).name != name or name in ("", ".."):
                raise InputError(f"{index} names the weights {name!r:.100}, which is no file beside it")


@contextmanager
def _trusting(path: str | os.PathLike, trust_remote_code: bool) -> Iterator[None]:
    if not trust_remote_code and path and Path(path).is_dir():
        check_links(Path(path))
        _check_shards(Path(path))
    try:
        yield
    except ValueError as error:
        if trust_remote_code or "trust_remote_code" not in str(error):
            raise
        raise InputError(
            f"{path or 'the configuration'} needs code of its own; read it, and if you trust it, let it run by "
            "--trust-remote-code (in Python `trust_remote_code=True`)"
        ) from error
