"""Bundling the code that travels with a checkpoint: a handful of modules that need torch and transformers alone.

transformers copies a model's module and the siblings that it imports into one flat folder. In this package they are
folders of small files, which are easy to work on, but tedious to review before passing `trust_remote_code=True`.
Saving joins the files of a folder into one module: `layers.py`, `search.py`, `text.py`, and for the model's own family
`configuration_X.py`, `modeling_X.py` and `tokenization_X.py`.
"""

import ast
import importlib.util
import os
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import cast

PACKAGE = __package__
SHARED_FOLDERS = ("layers", "search", "text")
KINDS = ("configuration", "tokenization")
WIDTH = 119
HEADER = '''"""{title}

From hf_paraphrase {version}, joined from files of its folder `models`: {sources}. Needs torch and transformers alone.
"""'''


@dataclass(frozen=True)
class SourceModule:
    """A file of `models`: its text, parsed, and its imports of other files of `models`, by their nodes."""

    name: str
    lines: tuple[str, ...]
    tree: ast.Module
    siblings: Mapping[ast.ImportFrom, str]

    @property
    def path(self) -> str:
        """As in "layers/recurrent.py"."""
        return f"{self.name.replace('.', '/')}.py"


@cache
def source_module(name: str) -> SourceModule:
    """Read a module of `models`, named as in "layers.recurrent"."""
    text = Path(__file__).parent.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    siblings = {
        node: _resolve(name, node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level
    }
    return SourceModule(name, tuple(text.splitlines()), tree, siblings)


def _resolve(name: str, node: ast.ImportFrom) -> str:
    relative = "." * node.level + (node.module or "")
    package = f"{PACKAGE}.{name}".rpartition(".")[0]
    return importlib.util.resolve_name(relative, package).removeprefix(f"{PACKAGE}.")


def bundle_name(module: str, family: str) -> str:
    """The module of a bundle that a file goes into; files of another family go into the saved model's own."""
    folder, _, name = module.partition(".")
    if folder in SHARED_FOLDERS:
        return folder
    kind = name.partition("_")[0]
    return f"{kind if kind in KINDS else 'modeling'}_{family}"


def bundle(*modules: str, family: str = "") -> dict[str, str]:
    """Join modules and their imports into a few modules, siblings of each other; returns their texts by file name.

    Args:
        modules: As in "residual_lstm.modeling_residual_lstm".
        family: Of the model; required if one of the modules belongs to a family.

    Raises:
        ValueError: Files of one bundle use one name for two things, or cannot be joined because of their imports.
    """
    bundles = defaultdict(list)
    for name in _in_order(modules):
        bundles[bundle_name(name, family)].append(source_module(name))
    return {f"{name}.py": _join(name, files, family) for name, files in bundles.items()}


def _in_order(modules: Iterable[str]) -> Iterator[str]:
    """The modules with all their imports, each after its top-level imports."""
    found: dict[str, list[str]] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            module = source_module(name)
            found[name] = sorted({other for node, other in module.siblings.items() if node in module.tree.body})
            waiting += sorted(module.siblings.values())
    return iter(TopologicalSorter(dict(sorted(found.items()))).static_order())


def _join(bundle: str, files: list[SourceModule], family: str) -> str:
    imported: defaultdict[str, set[str]] = defaultdict(set)
    origins: dict[str, str] = {}
    bodies = []
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                _collect(node, file, bundle, family, imported, origins)
            else:
                _claim(bundle, origins, dict.fromkeys(_defined(node), file.name))
        bodies.append(_body(file, bundle, family))
    head = [_header(bundle, files, family), "from __future__ import annotations", *_import_groups(imported)]
    return "\n\n".join(head) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def _header(bundle: str, files: list[SourceModule], family: str) -> str:
    from hf_paraphrase import __version__

    folder = bundle if bundle in SHARED_FOLDERS else family
    title = ast.get_docstring(ast.parse(Path(__file__).with_name(folder).joinpath("__init__.py").read_bytes()))
    text = HEADER.format(title=title, version=__version__, sources=", ".join(file.path for file in files))
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in text.splitlines())


def _collect(
    node: ast.Import | ast.ImportFrom,
    file: SourceModule,
    bundle: str,
    family: str,
    imported: dict[str, set[str]],
    origins: dict[str, str],
) -> None:
    """Record a top-level import; names from its own bundle are already defined above."""
    names = {ast.unparse(alias): alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Import):
        imported[""].update(names)
        for text, name in names.items():
            _claim(bundle, origins, {name: text})
        return
    sibling = file.siblings.get(node)
    source = node.module or "" if sibling is None else bundle_name(sibling, family)
    if source == "__future__":
        return
    _claim(bundle, origins, dict.fromkeys(names.values(), sibling or source))
    if source != bundle:
        imported[source if sibling is None else f".{source}"].update(names)
    elif any(alias.asname for alias in node.names):
        raise ValueError(f"{file.name}: import from the same bundle without `as`: {ast.unparse(node)}")


def _claim(bundle: str, origins: dict[str, str], names: Mapping[str, str]) -> None:
    for name, origin in names.items():
        if name != "annotations" and origins.setdefault(name, origin) != origin:
            raise ValueError(
                f"{name} means two things in {bundle}: one of {origins[name]}, one of {origin}; rename one"
            )


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _import_groups(imported: Mapping[str, set[str]]) -> list[str]:
    """Imports of the standard library, of other packages and of siblings, sorted as ruff does."""
    groups: list[list[str]] = [[], [], []]
    for name in sorted(imported[""], key=str.lower):
        groups[_group_of(name)].append(f"import {name}")
    for module in sorted(filter(None, imported), key=str.lower):
        groups[_group_of(module)].append(_import_line(module, imported[module]))
    return ["\n".join(lines) for lines in groups if lines]


def _group_of(module: str) -> int:
    return 2 if module.startswith(".") else int(module.partition(".")[0].split()[0] not in sys.stdlib_module_names)


def _import_line(module: str, names: set[str]) -> str:
    """Constants first, then classes, then functions; renamed imports have their own line."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
    renamed = [f"from {module} import {name}" for name in ordered if " as " in name]
    plain = [name for name in ordered if " as " not in name]
    line = f"from {module} import {', '.join(plain)}"
    if len(line) > WIDTH:
        line = f"from {module} import (\n    " + ",\n    ".join(plain) + ",\n)"
    return "\n".join([line, *renamed] if plain else renamed)


def _body(file: SourceModule, bundle: str, family: str) -> str:
    """A file without its imports; its docstring becomes a comment at its head."""
    lines: list[str | None] = list(file.lines)
    docstring = ast.get_docstring(file.tree)
    for place, node in enumerate(file.tree.body):
        is_docstring = docstring is not None and place == 0
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            _replace(lines, node, [])
    for node, sibling in file.siblings.items():
        if node not in file.tree.body:
            target = bundle_name(sibling, family)
            if target == bundle:
                raise ValueError(f"{file.name}: import at the top, it is in the same bundle: {ast.unparse(node)}")
            indent = " " * node.col_offset
            names = ", ".join(map(ast.unparse, node.names))
            _replace(lines, node, [f"{indent}from .{target} import {names}"])
    comment = [f"# {line}".rstrip() for line in [file.path, *(["", *docstring.splitlines()] if docstring else [])]]
    return "\n".join(comment) + "\n\n\n" + "\n".join(line for line in lines if line is not None).strip()


def _replace(lines: list[str | None], node: ast.stmt, by: list[str]) -> None:
    end = cast(int, node.end_lineno)
    lines[node.lineno - 1 : end] = [*by, *[None] * (end - node.lineno + 1 - len(by))]


def family_modules(family: str) -> list[str]:
    """The modules by which transformers reaches a family."""
    folder = Path(__file__).with_name(family)
    return [f"{family}.{path.stem}" for kind in (*KINDS, "modeling") for path in sorted(folder.glob(f"{kind}_*.py"))]


def write_family(family: str, folder: str | os.PathLike) -> None:
    """Write the code of a family into the folder of a checkpoint."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in _bundle_family(family).items():
        Path(folder, name).write_text(text, encoding="utf-8")


@cache
def _bundle_family(family: str) -> dict[str, str]:
    return bundle(*family_modules(family), family=family)
