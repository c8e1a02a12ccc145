"""Loading models with their tokenizers, to a device and in a precision."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..checkpoints.pretrained import choose_device, load_model, load_tokenizer, read_config
from ..common.errors import InputError
from ..common.hub_access import describe_absence
from ..common.installation import require
from ..models.layers.precision import fast_dtype
from ..models.search.pipeline_checks import refuse_misspelt
from ..released import RELEASED
from .int8 import quantize_weights

logger = logging.getLogger(__name__)

# What the names of causal language models end in.
LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel")
# Arguments that `from_pretrained` takes as keywords.
LOADING = ("attn_implementation", "gguf_file", "max_memory", "offload_folder", "quantization_config", "subfolder")
DTYPES = ("float32", "bfloat16", "float16", "fast", "int8", "auto")


def check_loading_arguments(names: Iterable[str], own: Iterable[str]) -> None:
    """Raise InputError for misspelt arguments of a `from_pretrained`, with the closest names.

    Those unlike any known one may belong to the configuration.
    """
    try:
        refuse_misspelt(names, {*own, *LOADING, *inspect.signature(PreTrainedModel.from_pretrained).parameters})
    except ValueError as error:
        raise InputError(str(error)) from None


def load_paraphraser(
    path: str | os.PathLike = RELEASED,
    device: str | int | torch.device | None = None,
    trust_remote_code: bool = False,
    dtype: str | torch.dtype | None = None,
    *,
    device_map: Any = None,
    causal: bool = False,
    hub: Mapping[str, Any] | None = None,
    **model_kwargs: Any,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a sequence-to-sequence model, or a causal language model, and its tokenizer.

    Args:
        path: A checkpoint folder, a .gguf file or the name of a Hub repository; by default the model that comes with
            the package.
        device: Device; -1 for the CPU, None for a GPU if available.
        trust_remote_code: Let the checkpoint's own code run.
        dtype: "float32", "bfloat16", "float16" or that of torch; "fast" for the one in which the device generates
            fastest, see `fast_dtype`; "int8" for 8-bit integers on the CPU, in which a model can be neither trained
            nor saved, see `quantize_weights`; None or "auto" for the checkpoint's. In half precision the outputs of a
            batch may differ from those of its texts one by one.
        device_map: Device map, as in `from_pretrained`, instead of `device`.
        causal: Whether it may be a causal language model, which whoever asks has to prompt.
        hub: Where model and tokenizer come from: `revision`, `token`, `cache_dir`, `local_files_only`.
        model_kwargs: Further arguments of the model's `from_pretrained`, such as `offload_folder`, or
            `gguf_file`, the name of a file in `path`.

    Raises:
        InputError: The folder holds no model or no tokenizer, code that would have to be trusted, or there is no such
            `dtype` or `device`.
        FileNotFoundError: There is no such checkpoint.
    """
    if device is not None and device_map is not None:
        raise InputError("`device` and `device_map` both say where the model goes: pass one of the two")
    device = choose_device(device)
    if device_map is not None:
        model_kwargs["device_map"] = device_map
    if dtype not in (None, "auto"):
        model_kwargs["dtype"] = _find_dtype(dtype, device)
    path, hub = Path(path) if isinstance(path, os.PathLike) else path, dict(hub or {})
    if causal and str(path).endswith(".gguf") and Path(path).is_file():
        path, model_kwargs["gguf_file"] = Path(path).parent, Path(path).name
    if "gguf_file" in model_kwargs:
        require("gguf", "gguf", "a GGUF file")
        # Packed weights can be neither saved nor converted, and computing with them needs code from the Hub.
        model_kwargs.setdefault("quantization_config", GgufConfig(dequantize=True))
    is_causal = causal and ("gguf_file" in model_kwargs or names_language_model(path, **hub))
    auto_class = AutoModelForCausalLM if is_causal else AutoModelForSeq2SeqLM
    model, tokenizer = _load(auto_class, path, trust_remote_code, hub, **model_kwargs)
    model = model if device_map is not None else model.to(device)
    if _is_int8(dtype):
        quantize_weights(model)
    return model, tokenizer


def names_language_model(path: str | os.PathLike, **place: Any) -> bool:
    """Whether a checkpoint is a causal language model, as its configuration says."""
    config = read_config(path, **place)
    kinds = config.get("architectures") or []
    return not config.get("is_encoder_decoder") and any(kind.endswith(LANGUAGE_MODELS) for kind in kinds)


def _is_int8(dtype: str | torch.dtype | None) -> bool:
    return str(dtype).removeprefix("torch.") == "int8"


def _find_dtype(dtype: str | torch.dtype, device: torch.device) -> torch.dtype:
    if _is_int8(dtype):
        return torch.float32  # in which it is loaded, to be quantised
    if dtype == "fast":
        found = fast_dtype(device)
        if device.type == "cpu" and found == torch.float32:
            logger.warning("`dtype`: this CPU has no fast arithmetic for bfloat16; the model runs in float32")
        return found
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise InputError(f"`dtype` must be one of {', '.join(DTYPES)}, not {dtype!r}")
    return getattr(torch, name)


def load_pair_model(
    path: str | os.PathLike, device: str | int | torch.device | None = None, trust_remote_code: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model that labels or scores pairs of sentences, and its tokenizer; the rest as `load_paraphraser`."""
    device = choose_device(device)
    model, tokenizer = _load(AutoModelForSequenceClassification, path, trust_remote_code, {})
    return model.to(device), tokenizer


def _load(
    auto_class: type, path: str | os.PathLike, trust_remote_code: bool, hub: dict[str, Any], **model_kwargs: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        model = load_model(auto_class, path, trust_remote_code, **hub, **model_kwargs)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        if Path(path).is_dir():
            raise InputError(f"{path} holds no loadable model: {error}") from error
        at = f" at revision {hub['revision']!r}" if "revision" in hub else ""
        raise FileNotFoundError(describe_absence(path, at=at)) from error
    if "gguf_file" in model_kwargs:
        hub = {**hub, "gguf_file": model_kwargs["gguf_file"]}
    message = f"{path} holds a model but no tokenizer; save one there with `save_pretrained`"
    try:
        tokenizer = load_tokenizer(path, trust_remote_code, **hub)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(message) from error
    # For architectures with a tokenizer class of their own, transformers makes one without words from nothing.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise InputError(message)
    return model, tokenizer
