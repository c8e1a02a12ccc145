"""How much longer a tokenizer may make a text: rules that replace a character by many, one after another, multiply."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..common.bounds import check_bound

PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
# What one of these may write for one character of what it reads; other rules keep the length, or add little.
COMPOSERS = {"NFKD": 18, "NFKC": 18, "NFD": 4, "NFC": 3, "ByteLevel": 4}


def check_growth(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """Refuse a tokenizer that could make a text many times longer.

    Args:
        tokenizer: Any; those without rules in a file of tokenizers pass.
        source: Names the checkpoint in the error.

    Raises:
        InputError: It could; the message names the part.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    for name in PARTS:
        part = getattr(backend, name, None)
        if part is not None:
            what = f"{source}: how many times longer the tokenizer's {name} can make a text"
            check_bound("TOKENIZER_GROWTH", measure_growth(json.loads(part.__getstate__())), what)
    padding = getattr(backend, "padding", None) or {}
    for name in ("length", "pad_to_multiple_of"):
        check_bound("NEW_TOKENS", padding.get(name) or 0, f"{source}: `{name}` of the tokenizer's padding")


def measure_growth(rule: Mapping[str, Any]) -> float:
    """The maximum growth factor of the rules in `tokenizer.json`: characters or tokens made from one."""
    kind = rule.get("type")
    if kind == "Sequence":
        steps = next((value for value in rule.values() if isinstance(value, list)), [])
        return math.prod(measure_growth(step) for step in steps)
    if kind == "Replace":
        return max(1, len(rule["content"]))
    if kind == "Prepend":
        return 1 + len(rule["prepend"])
    if kind == "Metaspace":
        return max(1, len(rule["replacement"]))
    if kind == "Precompiled":
        return _measure_charsmap(base64.b64decode(rule["precompiled_charsmap"] or ""))
    if kind == "TemplateProcessing":
        return max(len(rule["single"]), len(rule["pair"]))
    return COMPOSERS.get(str(kind), 1)


def _measure_charsmap(content: bytes) -> int:
    """The longest replacement in a map of SentencePiece: the size of its trie, the trie, and the replacements."""
    replacements = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
    return max(1, *(len(one.decode(errors="replace")) for one in replacements))
