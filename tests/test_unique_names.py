from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hf_paraphrase

FOLDER = Path(hf_paraphrase.__file__).parent
# A command is called as what it runs, and of the modules of `datasets` each is read by itself.
OWN_FUNCTIONS = {"cli", "datasets"}
# Of a mean loss as of the losses of many texts.
SAME = {"perplexity"}


def find_definitions(kinds: tuple[type, ...], without: set[str]) -> dict[str, list[str]]:
    """The modules that define each public name of some kinds, but for those of some rooms."""
    found = defaultdict(list)
    for path in sorted(FOLDER.rglob("*.py")):
        module = path.relative_to(FOLDER)
        if module.parts[0] not in without:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, kinds) and not node.name.startswith("_"):
                    found[node.name].append(str(module))
    return found


def test_a_class_name_stands_for_one_class():
    assert not {
        name: modules for name, modules in find_definitions((ast.ClassDef,), set()).items() if len(modules) > 1
    }


def test_a_function_name_stands_for_one_function():
    found = find_definitions((ast.FunctionDef,), OWN_FUNCTIONS)
    assert not {name: modules for name, modules in found.items() if len(modules) > 1 and name not in SAME}
