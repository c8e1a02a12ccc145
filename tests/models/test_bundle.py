"""The code of a checkpoint: a handful of modules, in which each name means one thing.

`tests/hub/test_remote_code.py` runs that of every architecture without the package.
"""

from __future__ import annotations

import ast
import sys

import pytest

import hf_paraphrase
from hf_paraphrase.models import bundle as bundling
from hf_paraphrase.models.bundle import bundle, family_modules, write_family
from hf_paraphrase.registration import ARCHITECTURES

# huggingface_hub and tokenizers are installed with transformers.
NEEDED = {"torch", "transformers", "tokenizers", "huggingface_hub"}
KINDS = ("configuration", "modeling", "tokenization")


def list_imports(tree: ast.Module) -> set[str]:
    """What a file imports as soon as it is imported: the packages, and siblings with a dot before them."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(f".{node.module}" if node.level else node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("family", [row.model_type for row in ARCHITECTURES])
def test_a_family_is_a_handful_of_modules(family, tmp_path):
    write_family(family, tmp_path)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(files) <= {"layers.py", "search.py", "text.py", *(f"{kind}_{family}.py" for kind in KINDS)}
    for name, text in files.items():
        tree = ast.parse(text, name)
        assert f"\n\nFrom hf_paraphrase {hf_paraphrase.__version__}, joined from " in ast.get_docstring(tree)
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        assert len(defined) == len(set(defined))
        siblings = {f".{other.removesuffix('.py')}" for other in files.keys() - {name}}
        assert list_imports(tree) <= {*sys.stdlib_module_names, *NEEDED, *siblings}


def test_what_labels_pairs_brings_no_pipeline():
    assert bundle(*family_modules("pair_lstm"), family="pair_lstm").keys() == {
        "configuration_pair_lstm.py",
        "layers.py",
        "modeling_pair_lstm.py",
    }


@pytest.fixture
def write_second(tmp_path, monkeypatch):
    """Writes the second file of a folder of two, in place of the package's folders."""
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "__init__.py").write_text('"""Layers."""\n')
    (tmp_path / "layers" / "first.py").write_text(
        '"""A docstring.\n\nOf two lines.\n"""\n\nimport math\n\n# Why.\nSIZE = 4\n'
    )
    monkeypatch.setattr(bundling, "__file__", str(tmp_path / "bundle.py"))
    bundling.source_module.cache_clear()
    yield (tmp_path / "layers" / "second.py").write_text
    bundling.source_module.cache_clear()


def test_files_follow_what_they_import_with_their_comments(write_second):
    write_second(
        "import math\nfrom os import sep as bar\nfrom os import path, PathLike\nimport torch\n"
        "from .first import SIZE\n\nTWICE = 2 * SIZE\n"
    )
    header, _, rest = bundle("layers.second")["layers.py"].partition("\n\nfrom __future__ import annotations\n\n")
    assert " ".join(header.split()) == (
        f'"""Layers. From hf_paraphrase {hf_paraphrase.__version__}, joined from files of its folder `models`: '
        'layers/first.py, layers/second.py. Needs torch and transformers alone. """'
    )
    assert rest == (
        "import math\nfrom os import PathLike, path\nfrom os import sep as bar\n\nimport torch\n\n"
        "# layers/first.py\n#\n# A docstring.\n#\n# Of two lines.\n\n\n# Why.\nSIZE = 4\n\n\n"
        "# layers/second.py\n\n\nTWICE = 2 * SIZE\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from .first import SIZE as other\n", "without `as`"),
        ("from .first import SIZE\nSIZE = 5\n", "SIZE means two things in layers: one of layers.first"),
        ("from .first import math\n", "math means two things"),
        ("def f():\n    from .first import SIZE\n", "import at the top"),
    ],
)
def test_what_cannot_be_bundled_is_named(write_second, text, reason):
    write_second(text)
    with pytest.raises(ValueError, match=reason):
        bundle("layers.second")
