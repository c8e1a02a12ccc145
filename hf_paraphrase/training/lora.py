"""Low-rank adapters (Hu et al. 2022) by peft: trained and resumed as an adapter, used as a model merged with it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from ..common.errors import InputError
from ..common.installation import require

# peft's file, and its prefix of weight names.
ADAPTER_FILE, PREFIX = "adapter_model.safetensors", "base_model.model."
NAME = "default"
# They train copies of whole modules, which merging does not write back.
NOT_MERGED = ("modules_to_save", "trainable_token_indices")


def check_lora(options: Mapping[str, Any]) -> None:
    """Refuse a recipe's `lora` before anything is loaded.

    Raises:
        InputError: peft is not installed, or its `LoraConfig` does not take an option.
    """
    require("peft", "peft", "`lora`")
    if unmerged := [name for name in NOT_MERGED if options.get(name)]:
        raise InputError(f"`lora`: `{unmerged[0]}` cannot be merged into the model; leave it out")
    _make_config(options)


def add_lora(model: PreTrainedModel, options: Mapping[str, Any], base: str) -> None:
    """Freeze a model and put new adapters into it, in place.

    Args:
        options: Arguments of peft's `LoraConfig`.
        base: Where the model comes from, for the adapter's configuration.

    Raises:
        InputError: The model has no such modules, or they share weights with others.
    """
    from peft import inject_adapter_in_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    model.requires_grad_(False)
    config = _make_config(options)
    config.base_model_name_or_path = base
    try:
        inject_adapter_in_model(config, model, NAME)
    except ValueError as error:
        raise InputError(f"`lora`: {error}") from error
    tied = {id(model.get_parameter(name)) for name in model.all_tied_weights_keys.values()}
    for name, layer in model.named_modules():
        if isinstance(layer, BaseTunerLayer) and id(layer.weight) in tied:
            raise InputError(f"`lora`: {name} shares its weights with another module; leave it out of target_modules")


def has_lora(model: PreTrainedModel) -> bool:
    """Whether `add_lora` changed a model."""
    return getattr(model, "peft_config", None) is not None


def merge_lora(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The weights with the adapters added to them, under the names of the model without adapters.

    The model stays as it is: taking adapters off again would round.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    weights = model.state_dict()
    for name, layer in model.named_modules():
        if isinstance(layer, BaseTunerLayer):
            merged = copy.deepcopy(layer)
            merged.merge()
            weights = {key: tensor for key, tensor in weights.items() if not key.startswith(f"{name}.")}
            base = merged.get_base_layer().state_dict()
            weights |= {f"{name}.{key}": tensor for key, tensor in base.items()}
    return weights


def save_lora(model: PreTrainedModel, directory: Path) -> None:
    """Write the adapters alone, as peft reads them."""
    from peft import get_peft_model_state_dict

    adapter = get_peft_model_state_dict(model, adapter_name=NAME)
    save_file({f"{PREFIX}{key}": tensor.contiguous() for key, tensor in adapter.items()}, directory / ADAPTER_FILE)
    model.peft_config[NAME].save_pretrained(str(directory))


def load_lora(model: PreTrainedModel, directory: Path) -> None:
    """Put the adapters that `save_lora` wrote into a model that `add_lora` changed."""
    from peft import set_peft_model_state_dict

    adapter = load_file(directory / ADAPTER_FILE)
    set_peft_model_state_dict(model, {key.removeprefix(PREFIX): value for key, value in adapter.items()}, NAME)


def _make_config(options: Mapping[str, Any]) -> Any:
    from peft import LoraConfig

    try:
        return LoraConfig(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"`lora`: {str(error).removeprefix('LoraConfig.__init__() ')}") from error
