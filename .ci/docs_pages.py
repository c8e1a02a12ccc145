"""A hook of mkdocs: which files of the repository are pages, and a page of docstrings for each room of the package."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
# A template is no page.
LEFT_OUT = ("model_cards/model_card_template.md",)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay the pages out."""
    cards = sorted(path.parent.name for path in (ROOT / "model_cards").glob("*/README.md"))
    config.nav = [
        {"hf_paraphrase": "README.md"},
        {"Papers": "model_cards/PAPERS.md"},
        {"Decoding": "model_cards/DECODING.md"},
        {"Paraphraser": "model_cards/PARAPHRASER.md"},
        {"Models": [{name: f"model_cards/{name}/README.md"} for name in cards]},
        {"Reference": [{room: f"reference/{room}.md"} for room in find_rooms()]},
        {"Contributing": "CONTRIBUTING.md"},
        {"Changes": "CHANGELOG.md"},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the files from where they lie, under their paths in the repository, so that links between them hold."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    cards = (path for path in (ROOT / "model_cards").rglob("*") if path.is_file())
    names = [*PAGES, *(path.relative_to(ROOT).as_posix() for path in sorted(cards))]
    found = [File.generated(config, name, abs_src_path=str(ROOT / name)) for name in names if name not in LEFT_OUT]
    reference = [
        File.generated(config, f"reference/{room}.md", content=write_reference(room)) for room in find_rooms()
    ]
    return Files([*theme, *found, *reference])


def find_rooms() -> list[str]:
    """The folders of the package, in the order of the alphabet."""
    return sorted(path.parent.name for path in (ROOT / "hf_paraphrase").glob("*/__init__.py"))


def write_reference(room: str) -> str:
    """Ask for the docstrings of every module of a room."""
    folder = ROOT / "hf_paraphrase" / room
    modules = sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules)
    return "\n\n".join(
        [f"# {room}", f"::: hf_paraphrase.{room}\n    options: {{members: false}}", *(f"::: {name}" for name in names)]
    )
