"""Nothing in the package opens what a user names but through `pretrained`, read from its source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hf_paraphrase
from tests.cli.runner import find_commands

ROOT = Path(hf_paraphrase.__file__).parent
DOOR = ROOT / "checkpoints/pretrained.py"
# It reads a config that it has just written from the package's own files.
UNPACKING = ROOT / "released/packing.py"
# A file of the checkpoints that are pushed with it: it runs where they are trusted, and without this package.
HANDLER = ROOT / "hub/handler.py"
LOADERS = {"from_pretrained", "from_config", "pipeline", "SentenceTransformer", "CrossEncoder"}
LOADERS |= {"get_class_from_dynamic_module", "get_cached_module_file", "load_custom_generate"}
# Classes of this package, which hand the argument on.
OWN = {"Paraphraser", "ParaphraseRetriever"}
# Commands that load no checkpoint that the user names, or none at all; all others ask whom to trust.
WITHOUT = {
    "recipes",
    "score",
    "explain curves",
    "push",
    "space",
    "info",
    "env",
    "reproduce",
    "retriever train",
}
WITHOUT |= {"retriever train", "datasets list", "datasets info", "datasets preview", "rating make", "rating read"}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def find_careless_calls(source: str, is_door: bool = False) -> list[int]:
    """The lines that load something without saying whether its code may run, or past the door."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        name, owner = _name(node.func), _name(getattr(node.func, "value", None))
        if name == "load" and owner in ("torch", "np", "numpy", "pickle", "joblib"):
            safe = keywords.get("weights_only")
            if owner != "torch" or not (isinstance(safe, ast.Constant) and safe.value is True):
                lines.append(node.lineno)
        if name not in LOADERS or "modules" in keywords:  # a sentence-transformer made of parts at hand opens nothing
            continue
        trust = keywords.get("trust_remote_code")
        is_said = trust is not None and not (isinstance(trust, ast.Constant) and trust.value is None)
        passes = is_door or name in ("SentenceTransformer", "pipeline") or owner in OWN
        if not (is_said and passes):
            lines.append(node.lineno)
    return lines


def test_every_loading_call_goes_through_the_door_and_says_whom_it_trusts():
    careless = {
        str(path.relative_to(ROOT)): lines
        for path in set(ROOT.rglob("*.py")) - {HANDLER}
        if (lines := find_careless_calls(path.read_text(encoding="utf-8"), path in (DOOR, UNPACKING)))
    }
    assert not careless


@pytest.mark.parametrize(
    ("source", "is_door"),
    [
        ("AutoModel.from_pretrained(path)", True),
        ("AutoModel.from_pretrained(path, trust_remote_code=None)", True),
        ("AutoModel.from_pretrained(path, trust_remote_code=False)", False),
        ("auto_class.from_config(config)", True),
        ("transformers.pipeline('text-classification', model=path)", False),
        ("SentenceTransformer(name)", False),
        ("ParaphraseRetriever.from_pretrained(path)", False),
        ("torch.load(path)", True),
        ("pickle.load(file)", True),
    ],
)
def test_a_careless_call_is_found(source, is_door):
    assert find_careless_calls(source, is_door) == [1]


def find_asking() -> set[str]:
    """The commands that have the option."""
    options = {name: {option.name for option in command.params} for name, command in find_commands().items()}
    return {name for name, names in options.items() if "trust_remote_code" in names}


def test_every_command_that_loads_a_checkpoint_asks_whom_to_trust():
    assert set(find_commands()) == find_asking() | WITHOUT
    assert not find_asking() & WITHOUT
