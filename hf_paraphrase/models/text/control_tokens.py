"""Control tokens: a token before the source that says how far the output is to differ from it (QCPG)."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import cast

import torch
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

__all__ = ["check_strength", "control_ids", "find_control", "prepend_control"]


def check_strength(strength: float | None) -> None:
    """Raise ValueError unless `strength` is None or a number from 0 to 1."""
    is_number = isinstance(strength, int | float) and not isinstance(strength, bool)
    if strength is not None and not (is_number and 0 <= strength <= 1):
        raise ValueError(f"`strength` must be a number from 0 to 1, not {strength!r:.100}")


def control_ids(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The ids of a model's control tokens, from "stay close" to "differ freely"; empty for a model without any."""
    tokens = list(getattr(config, "control_tokens", None) or ())
    return cast(list[int], tokenizer.convert_tokens_to_ids(tokens))


def find_control(
    config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, strength: float | None = None
) -> int | None:
    """Return the id of the control token for a strength.

    Args:
        config: The model's: `control_tokens` names the tokens, one for each level, and `default_strength` is used
            where `strength` is None.
        tokenizer: Its tokenizer.
        strength: From 0 (close to the source) to 1 (as free as possible). Of n levels it asks for level
            `round(strength * (n - 1))`.

    Returns:
        The id; None where neither the call nor the config names a strength, and the model runs plain.

    Raises:
        ValueError: The strength is out of range, or the model has no control tokens.

    Source: Bandel et al. 2022, Quality Controlled Paraphrase Generation.
    """
    ids = control_ids(config, tokenizer)
    if strength is not None and not ids:
        raise ValueError(
            f"`strength`: this {config.model_type} has no control tokens; `Paraphraser` moves thresholds instead"
        )
    strength = getattr(config, "default_strength", None) if strength is None else strength
    check_strength(strength)
    if strength is None or not ids:
        return None
    return ids[round(strength * (len(ids) - 1))]


def prepend_control(inputs: MutableMapping[str, torch.Tensor], control: int) -> None:
    """Put a control token before the first token of each text, in place; padding on either side stays outside.

    Args:
        inputs: `input_ids` and `attention_mask`, each `(texts, length)`; both get one column more.
        control: The token's id.
    """
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    rows, first = torch.arange(len(ids)), mask.argmax(1)
    for name, values, value in (("input_ids", ids, control), ("attention_mask", mask, 1)):
        # The copied column is padding on the left, or is overwritten.
        inputs[name] = torch.cat([values[:, :1], values], dim=1)
        inputs[name][rows, first] = value
