"""The site of the documentation: its pages are the repository's files and docstrings, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def hook():
    sys.path.insert(0, str(ROOT / ".ci"))
    import docs_pages

    sys.path.remove(str(ROOT / ".ci"))
    return docs_pages


@pytest.fixture(scope="module")
def files(hook) -> dict:
    """The files of the site, by their paths on it."""
    from mkdocs.config import load_config
    from mkdocs.structure.files import get_files

    config = load_config(str(ROOT / ".ci" / "mkdocs.yml"))
    config.plugins._current_plugin = "docs_pages"  # as mkdocs does while it calls a hook
    return {file.src_uri: file for file in hook.on_files(get_files(config), config)}


def test_pages_are_the_files_themselves(files) -> None:
    copied = {name: file for name, file in files.items() if not name.startswith("reference/")}
    cards = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("model_cards/*/README.md")}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "model_cards/PAPERS.md", *cards} <= copied.keys()
    assert "model_cards/model_card_template.md" not in copied
    assert copied["scripts/docs/install.md"].url == "install/"
    for name, file in copied.items():
        assert Path(file.abs_src_path) == ROOT / name


def test_every_page_of_the_menu_is_there(hook, files) -> None:
    shown = re.findall(r"'([\w/.-]+\.md)'", repr(hook.on_config(SimpleNamespace()).nav))
    assert set(shown) <= files.keys() and {f"reference/{room}.md" for room in hook.find_rooms()} <= set(shown)
    assert {name for name in files if name.startswith("scripts/docs/") and name.endswith(".md")} <= set(shown)
    assert [Path(name).stem for name in shown[:3]] == ["README", "install", "quickstart"]


def test_the_reference_asks_for_every_module(hook, files) -> None:
    asked = []
    for room in hook.find_rooms():
        asked += re.findall(r"^::: (\S+)$", files[f"reference/{room}.md"].content_string, re.MULTILINE)
    modules = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "hf_paraphrase").glob("*/**/*.py")]
    inner = {".".join(module.parts) for module in modules if module.name != "__init__"}
    assert sorted(asked) == sorted(inner | {f"hf_paraphrase.{room}" for room in hook.find_rooms()})


def test_the_reference_begins_with_the_paraphraser(files) -> None:
    asked = re.findall(r"^::: (\S+)$", files["reference/public.md"].content_string, re.MULTILINE)
    assert asked[0] == "hf_paraphrase.generation.paraphraser.Paraphraser"
    assert {"augment", "load_dataset", "load_metric", "train_tokenizer"} <= {name.rpartition(".")[2] for name in asked}


def build(folder: Path, config: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", config]
    return subprocess.run([*command, "--site-dir", folder], capture_output=True, text=True)


@pytest.mark.slow
def test_the_site_is_built_and_asks_nobody_else(tmp_path: Path) -> None:
    done = build(tmp_path / "site", ROOT / ".ci" / "mkdocs.yml")
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|source)[^>]+src(?:set)?="https?:|rel="stylesheet" href="https?:', text)
    reference = (tmp_path / "site" / "reference" / "generation" / "index.html").read_text(encoding="utf-8")
    assert "Writes paraphrases of texts with any sequence-to-sequence model" in reference
    found = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titled = [doc for doc in found if "install" in doc["title"].lower()]
    assert max(titled, key=lambda doc: doc.get("boost", 1))["location"] == "install/"
