"""Loading of checkpoints: the single place, which runs no code from a repository unless the user trusts it.

transformers is always told whether the code of a checkpoint may run. Weights are read from safetensors only, since a
pickle is a program too; and no file of a checkpoint may point outside it (`trust`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..common.bounds import check_generation_sizes, check_model_sizes
from ..common.checks import whole_number
from ..common.errors import InputError
from ..common.files import check_unicode, read_json_object
from ..common.hub_access import use_cache_without_network
from ..released import find_checkpoint
from .tokenizer_growth import check_growth
from .trust import TRUST_HINT, WHERE, check_checkpoint, check_nested_code, trusting
from .weights import check_finite, check_keys, check_plan, describe_mismatches, find_damaged, muted_report, read_shapes

# The files whose JSON transformers reads; all of them hold one object.
JSON_FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")


def load_model(
    auto_class: type[Any],
    path: str | os.PathLike,
    trust_remote_code: bool = False,
    new_head: bool = False,
    **kwargs: Any,
) -> PreTrainedModel:
    """Load a model, all of whose weights are in its files, and finite.

    Args:
        auto_class: What loads it, such as `AutoModelForSeq2SeqLM`.
        path: A checkpoint folder, Hub repository or the released model's name.
        trust_remote_code: Run the checkpoint's own code, and read pickled weights.
        new_head: The model will be trained: a head that the checkpoint lacks is initialised.
        kwargs: Further arguments of `from_pretrained`.

    Raises:
        InputError: It needs its own code, which is not trusted; its files point outside it, are damaged or exceed a
            limit; or it is not a model of that class.
        OSError: The model does not exist.
    """
    path = find_checkpoint(path)
    source = os.fspath(path)
    place = {name: kwargs[name] for name in WHERE if name in kwargs}
    with _trusting(path, trust_remote_code, place, kwargs.get("gguf_file")), _naming_damage(path):
        shapes: Mapping[str, tuple[int, ...]] = {} if trust_remote_code else _plan(auto_class, path, kwargs)
        with muted_report():
            try:
                model, info = auto_class.from_pretrained(
                    path,
                    trust_remote_code=trust_remote_code,
                    use_safetensors=None if trust_remote_code else True,
                    output_loading_info=True,
                    **kwargs,
                )
            except RuntimeError as error:
                if "ignore_mismatched_sizes" not in str(error):
                    raise
                wrong = describe_mismatches(shapes, Path(path)) or "some have other shapes"
                raise InputError(f"{source}: the weights do not match config.json: {wrong}") from error
    check_keys(model, info, source, headless=auto_class is AutoModel, new_head=new_head)
    check_finite(model, source)
    if getattr(model, "generation_config", None) is not None:
        check_generation_sizes(model.generation_config.to_dict(), f"{source}: the generation config")
        _check_start(model, f"{source}: the generation config")
    return model


def _check_start(model: PreTrainedModel, source: str) -> None:
    start = model.generation_config.decoder_start_token_id
    size = getattr(model.config.get_text_config(decoder=True), "vocab_size", None)
    if isinstance(start, int) and isinstance(size, int) and not 0 <= start < size:
        raise InputError(f"{source}: `decoder_start_token_id` is {start}, but the vocabulary has {size:,} tokens")


def _plan(auto_class: type[Any], path: str | os.PathLike, kwargs: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """The shapes of the model's tensors, before any is made; refused where they are too large."""
    config = kwargs.get("config")
    if config is None:
        place = {name: kwargs[name] for name in (*WHERE, "gguf_file") if name in kwargs}
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, **place)
    shapes = _shapes_of(auto_class, config)
    check_plan(shapes, os.fspath(path), Path(path) if Path(path).is_dir() else None)
    return shapes


def _shapes_of(auto_class: type[Any], config: PreTrainedConfig) -> Mapping[str, tuple[int, ...]]:
    with torch.device("meta"):
        return read_shapes(auto_class.from_config(config, trust_remote_code=False))


def load_tokenizer(path: str | os.PathLike, trust_remote_code: bool = False, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Load a tokenizer; arguments and errors as those of `load_model`."""
    path = find_checkpoint(path)
    gguf_file = kwargs.get("gguf_file")
    with _trusting(path, trust_remote_code, gguf_file=gguf_file), _naming_damage(path, (OSError, ValueError)):
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust_remote_code, **kwargs)
    length = tokenizer.model_max_length
    if not isinstance(length, int | float) or not length >= 1:
        raise InputError(
            f"{path}: `model_max_length` of the tokenizer must be a number of tokens, not {length!r:.100}"
        )
    if not trust_remote_code:
        check_growth(tokenizer, os.fspath(path))
    return tokenizer


def load_config(path: str | os.PathLike, trust_remote_code: bool = False) -> PreTrainedConfig:
    """Load a model's configuration; arguments and errors as those of `load_model`."""
    path = find_checkpoint(path)
    with _trusting(path, trust_remote_code), _naming_damage(path):
        try:
            return AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)
        except OSError as error:
            if Path(path).is_dir():
                raise
            raise FileNotFoundError(
                f"{path} is neither a checkpoint folder nor a Hub repository within reach"
            ) from error


def choose_device(device: str | int | torch.device | None = None) -> torch.device:
    """Return a device of this machine.

    Args:
        device: As torch takes it, or -1 for the CPU, as pipelines take it; None for a GPU if available.

    Raises:
        InputError: The device does not exist.
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


def read_config(path: str | os.PathLike, **place: Any) -> dict[str, Any]:
    """A checkpoint's `config.json`, read without running code; empty where there is none: loading says so better."""
    use_cache_without_network(path, place.get("local_files_only"))
    try:
        values, _ = PreTrainedConfig.get_config_dict(find_checkpoint(path), **place)
    except (OSError, RecursionError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def load_pipeline(
    task: str, auto_class: type[Any], path: str | os.PathLike, trust_remote_code: bool = False, **kwargs: Any
) -> transformers.Pipeline:
    """Load a model with its tokenizer as a pipeline; arguments and errors as those of `load_model`."""
    model, tokenizer = load_model(auto_class, path, trust_remote_code), load_tokenizer(path, trust_remote_code)
    make_pipeline: Any = transformers.pipeline  # whose overloads know its own tasks alone
    return make_pipeline(task, model=model, tokenizer=tokenizer, trust_remote_code=trust_remote_code, **kwargs)


def make_model(auto_class: type[Any], config: PreTrainedConfig, trust_remote_code: bool = False) -> PreTrainedModel:
    """Make a model with new weights; of its configuration too, the code that it names runs only where trusted."""
    with _trusting(config.name_or_path or "", trust_remote_code):
        if not trust_remote_code:
            check_nested_code(config.to_dict(), config.name_or_path or "the configuration")
            check_plan(_shapes_of(auto_class, config), f"`{config.model_type}`")
        return auto_class.from_config(config, trust_remote_code=trust_remote_code)


def _check_json(folder: Path) -> None:
    """Refuse JSON that cannot be read, by the name of its file, which transformers does not say."""
    for name in JSON_FILES:
        if (folder / name).is_file():
            read_json_object(folder / name)


def _check_prefix(config: Mapping[str, Any], source: str) -> None:
    """Refuse a prefix, of a task or of all, that is not text."""
    of_tasks = config.get("task_specific_params") or {}
    if not isinstance(of_tasks, Mapping) or not all(isinstance(one, Mapping) for one in of_tasks.values()):
        raise InputError(f"{source}: `task_specific_params` must hold an object for each task")
    for one in (config, *of_tasks.values()):
        prefix = one.get("prefix")
        if not isinstance(prefix, str | None):
            raise InputError(f"{source}: `prefix` must be text, not {prefix!r:.100}")
        check_unicode(prefix or "", f"{source}: `prefix`")


@contextmanager
def _naming_damage(path: str | os.PathLike, kept: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    """Name the checkpoint in errors: damaged or hostile files make transformers raise errors of every kind.

    Args:
        path: The checkpoint.
        kept: Errors to pass through unchanged.
    """
    try:
        yield
    except (InputError, MemoryError, torch.OutOfMemoryError, *kept):
        raise
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} needs a library that is not installed: {reason:.300}") from error
    except SafetensorError as error:
        raise InputError(f"{find_damaged(Path(path)) or path} is damaged: {error}") from error
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise InputError(f"{path} holds no loadable model: {kind}{error!s:.1000}") from error


@contextmanager
def _trusting(
    path: str | os.PathLike,
    trust_remote_code: bool,
    place: Mapping[str, Any] = MappingProxyType({}),
    gguf_file: str | None = None,
) -> Iterator[None]:
    if path:
        use_cache_without_network(path, place.get("local_files_only"))
    if not trust_remote_code and path:
        check_checkpoint(path, gguf_file, **place)
        _check_json(Path(path))
        config = read_config(path, **place)
        _check_prefix(config, f"{path}: config.json")
        check_model_sizes(config, f"{path}: config.json")
    try:
        with trusting(trust_remote_code):
            yield
    except ValueError as error:
        if trust_remote_code or "trust_remote_code" not in str(error):
            raise
        raise InputError(
            f"{path or 'the configuration'} needs code of its own; read it, and if you trust it, let it run by "
            f"{TRUST_HINT}"
        ) from error
