"""A hook of mkdocs: which files of the repository are pages, in which order, and the reference made of docstrings."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hf_paraphrase import MODULES
from hf_paraphrase.registration import ARCHITECTURES

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = "scripts/docs"
HOW_TO = {
    "Paraphrase a column": "paraphrase-a-column",
    "Paraphrase a document": "paraphrase-a-document",
    "Paraphrase a corpus": "paraphrase-a-corpus",
    "Choose a model": "choose-a-model",
    "Train on your pairs": "train",
    "Serve over HTTP": "serve",
    "Share on the Hub": "share",
    "Reproduce a paper": "reproduce",
}
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "hf_paraphrase/generation/prompt.yaml")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay the pages out."""
    cards = sorted(path.parent.name for path in (ROOT / "model_cards").glob("*/README.md"))
    config.nav = [
        {"hf_paraphrase": "README.md"},
        {"Install": f"{WRITTEN}/install.md"},
        {"Quickstart": f"{WRITTEN}/quickstart.md"},
        {"How to": [{title: f"{WRITTEN}/{name}.md"} for title, name in HOW_TO.items()]},
        {"Concepts": f"{WRITTEN}/concepts.md"},
        {
            "Reference": [
                {"Paraphraser and other public names": "reference/public.md"},
                {"Corpora and metrics": f"{WRITTEN}/corpora-and-metrics.md"},
                *({room: f"reference/{room}.md"} for room in find_rooms()),
            ]
        },
        {
            "Results": [
                {"Results": f"{WRITTEN}/results.md"},
                {"Decodings": "model_cards/DECODING.md"},
                {"Paraphraser": "model_cards/PARAPHRASER.md"},
                {"Papers": "model_cards/PAPERS.md"},
            ]
        },
        {"Models": [{name: f"model_cards/{name}/README.md"} for name in cards]},
        {"Contributing": "CONTRIBUTING.md"},
        {"Changes": "CHANGELOG.md"},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the files from where they lie, so that the links between them hold; written pages lose their folder."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    folders = ("model_cards", WRITTEN)
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    names = [*FILES, *(path.relative_to(ROOT).as_posix() for path in paths)]
    names.remove("model_cards/model_card_template.md")
    found = [File.generated(config, name, abs_src_path=str(ROOT / name)) for name in names]
    for file in found:
        file.dest_uri = file.dest_uri.removeprefix(f"{WRITTEN}/")
    pages = {"public": write_public(), **{room: write_reference(room) for room in find_rooms()}}
    reference = [File.generated(config, f"reference/{name}.md", content=text) for name, text in pages.items()]
    return Files([*theme, *found, *reference])


def find_rooms() -> list[str]:
    """The folders of the package, in the order of the alphabet."""
    return sorted(path.parent.name for path in (ROOT / "hf_paraphrase").glob("*/__init__.py"))


def write_public() -> str:
    """Ask for the docstrings of the public names, `Paraphraser` first; the models stand in the room `models`."""
    architectures = {name for row in ARCHITECTURES for name in row.modules}
    names = sorted(set(MODULES) - architectures, key=lambda name: (name != "Paraphraser", name))
    # Cross-references go to the pages of the rooms.
    options = "\n    options: {show_root_full_path: false, skip_local_inventory: true}"
    return "\n\n".join(["# Public names", *(f"::: hf_paraphrase.{MODULES[name]}.{name}{options}" for name in names)])


def write_reference(room: str) -> str:
    """Ask for the docstrings of every module of a room."""
    folder = ROOT / "hf_paraphrase" / room
    modules = sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules)
    return "\n\n".join(
        [f"# {room}", f"::: hf_paraphrase.{room}\n    options: {{members: false}}", *(f"::: {name}" for name in names)]
    )
