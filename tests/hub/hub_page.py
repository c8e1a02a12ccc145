"""What the Hub's page of a model shows, by the rules that `model_cards/HUB_LIBRARY.md` prepares and describes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

TEXT = (Path(__file__).parents[2] / "model_cards" / "HUB_LIBRARY.md").read_text(encoding="utf-8")
ENTRY, FUNCTION = re.findall(r"```ts\n(.*?)```", TEXT, re.DOTALL)
TEMPLATES = dict(re.findall(r"const (\w+) = `(.*?)`;", FUNCTION, re.DOTALL))
# Conditions in their order, each with what is returned; the last has none.
BRANCHES = re.findall(r"(?:if \((.*)\) \{\s*)?return \[(.*?)\];", FUNCTION)


def find_snippets(data: ModelCardData, model_id: str) -> list[str]:
    """The snippets for a card's metadata, as JavaScript would find them in the prepared function.

    Raises:
        KeyError: The card names another library.
    """
    if data.library_name not in re.findall(r"^\t(\w+): \{", ENTRY, re.MULTILINE):
        raise KeyError(data.library_name)
    names = next(names for condition, names in BRANCHES if holds(condition, data))
    return [TEMPLATES[name].replace("${model.id}", model_id) for name in names.split(", ")]


def holds(condition: str, data: ModelCardData) -> bool:
    """Evaluate a condition of the function; these are all that it may have."""
    if not condition:
        return True
    if tag := re.fullmatch(r'model\.pipeline_tag !== "([\w-]+)"', condition):
        return data.pipeline_tag != tag[1]
    types = re.fullmatch(r"(\[.*\])\.some\(\(type\) => model\.tags\.includes\(type\)\)", condition)[1]
    return any(model_type in data.tags for model_type in ast.literal_eval(types))


def run_snippet(snippet: str) -> Any:
    """Run a snippet, and return the value of its last line."""
    *lines, last = ast.parse(snippet).body
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lines, []), "snippet", "exec"), names)
    return eval(compile(ast.Expression(last.value), "snippet", "eval"), names)
