"""Who imports whom in the package, read from its source: no circle, one order of the rooms, and no endless file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import hf_paraphrase

ROOT = Path(hf_paraphrase.__file__).parent
NAME = ROOT.name
# Each room may import those before it.
ROOMS = (
    "common",
    "released",
    "checkpoints",
    "papers",
    "tokenization",
    "metrics",
    "datasets",
    "models",
    "registration",
    "retrieval",
    "generation",
    "training",
    "rating",
    "evaluation",
    "analysis",
    "hub",
    "serving",
    "augmentation",
    "distillation",
    "reproduction",
    "cli",
)
# What goes against that order, or out of `models`, which travels to the Hub alone; and why.
EXCEPTIONS = {
    ("models", "retrieval"): "a pipeline finds its pairs where the package is installed, and says so where it is not",
    ("models", "generation"): "the pipeline chooses candidates by the package's encoders, in the same way",
}
MOST_LINES = 500


class Import(NamedTuple):
    """An import of one module by another one of the package."""

    importer: str
    imported: str
    is_deferred: bool  # in a function, or for type checkers alone


def find_modules(root: Path) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    files = {path: (root.name, *path.relative_to(root).with_suffix("").parts) for path in root.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in files.items()}


def find_imports(root: Path) -> list[Import]:
    """All imports within a package."""
    modules = find_modules(root)
    found = []
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node, is_deferred in _walk(ast.parse(path.read_text(encoding="utf-8"))):
            for imported in _targets(node, package):
                while imported and imported not in modules:  # a name in a module, or a module of others
                    imported = imported.rpartition(".")[0]
                if imported:
                    found.append(Import(name, imported, is_deferred))
    return found


def _walk(tree: ast.AST, is_deferred: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_deferred
        else:
            for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            yield from _walk(node, is_deferred or for_types or isinstance(node, ast.FunctionDef))


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
    module = ".".join([*above, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names]


def find_circle(imports: list[Import]) -> list[str]:
    """Modules of which each imports the next one as it is imported itself, the last the first; nothing where none do.

    Importing a module imports the packages around it first.
    """
    needs: dict[str, set[str]] = {}
    for one in imports:
        parts = one.imported.split(".")
        around = {".".join(parts[:count]) for count in range(1, len(parts))}
        around = {package for package in around if not f"{one.importer}.".startswith(f"{package}.")}
        if not one.is_deferred:
            needs.setdefault(one.importer, set()).update({one.imported} | around)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def room_of(module: str) -> str | None:
    """The room of a module; None for the package itself and what starts it."""
    room = module.split(".")[1:2]
    return room[0] if room and room != ["__main__"] else None


def find_wrong_ways(imports: list[Import]) -> dict[tuple[str, str], list[Import]]:
    """The imports against the order of the rooms, or out of `models`, by the rooms at both ends."""
    wrong: dict[tuple[str, str], list[Import]] = {}
    for one in imports:
        rooms = room_of(one.importer), room_of(one.imported)
        if None in rooms or rooms[0] == rooms[1]:
            continue
        if rooms[0] == "models" or ROOMS.index(rooms[1]) > ROOMS.index(rooms[0]):
            wrong.setdefault(rooms, []).append(one)
    return wrong


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return find_imports(ROOT)


def test_there_is_no_circle(imports):
    assert find_circle(imports) == []


def test_there_is_none_of_deferred_imports_either(imports):
    """But for what the package itself offers, such as its version."""
    inner = [one for one in imports if one.imported != NAME]
    assert find_circle([one._replace(is_deferred=False) for one in inner]) == []


def test_every_room_has_its_place():
    assert {room_of(name) for name in find_modules(ROOT)} - {None} == set(ROOMS)


def test_rooms_import_in_one_direction(imports):
    """An exception that nothing needs is none."""
    wrong = find_wrong_ways(imports)
    assert {rooms: found for rooms, found in wrong.items() if rooms not in EXCEPTIONS} == {}
    assert wrong.keys() == EXCEPTIONS.keys()


def test_models_import_the_package_in_functions_alone(imports):
    """Their checkpoints run where it is not installed."""
    outward = [one for one in imports if room_of(one.importer) == "models" and room_of(one.imported) != "models"]
    assert [one for one in outward if not one.is_deferred] == []


def test_files_are_no_longer_than_a_sitting():
    files = [path for folder in (NAME, "scripts", "tests") for path in (ROOT.parent / folder).rglob("*.py")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long = {path.relative_to(ROOT.parent).as_posix() for path, length in lengths.items() if length > MOST_LINES}
    assert long == set()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two modules that import each other, one of them in a function, and a package around a third."""
    root = tmp_path / "one"
    files = {
        "__init__.py": "",
        "a.py": "from . import b\nif TYPE_CHECKING:\n    from .far import away",
        "b.py": "def f():\n    from .a import name",
        "far/__init__.py": "import one.a",
        "far/away.py": "import json",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_imports_are_found(package):
    assert sorted(find_imports(package)) == [
        Import("one.a", "one.b", False),
        Import("one.a", "one.far.away", True),
        Import("one.b", "one.a", True),
        Import("one.far", "one.a", False),
    ]
    assert find_circle(find_imports(package)) == []


@pytest.mark.parametrize(
    ("file", "text", "circle"),
    [
        ("b.py", "from .a import name", {"one.a", "one.b"}),
        ("b.py", "try:\n    import one.a\nexcept ImportError:\n    pass", {"one.a", "one.b"}),
        # `far` is imported before `away`.
        ("b.py", "from .far.away import json", {"one.a", "one.b", "one.far"}),
    ],
)
def test_a_circle_is_found(package, file, text, circle):
    (package / file).write_text(text)
    assert set(find_circle(find_imports(package))) == circle


def test_a_wrong_way_is_found():
    ways = [("metrics.a", "models.b"), ("models.a", "metrics.b"), ("cli.a", "models.b"), ("models.a", "models.b")]
    found = find_wrong_ways([Import(f"{NAME}.{one}", f"{NAME}.{other}", True) for one, other in ways])
    assert found.keys() == {("metrics", "models"), ("models", "metrics")}
