"""Where the corpora are published: `addresses.yaml` has addresses, licences and whom to ask for access."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import yaml

# The environment variable that names another place for all of them: an address or a folder in which each corpus has a
# folder of its name with the files as they are released, such as mscoco/annotations_trainval2014.zip.
DOWNLOADS = "HF_PARAPHRASE_DOWNLOADS"


@dataclass(frozen=True)
class ReleasedFile:
    """A file or archive that a corpus is released in."""

    url: str  # its published address; parts in braces are filled from the corpus's arguments
    size: int | None = None  # its size in bytes, where known
    sha256: str | None = None  # its SHA-256, where known

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Release:
    """How a corpus is given out."""

    licence: str  # named before anything is downloaded
    files: tuple[ReleasedFile, ...] = ()  # what to download; nothing where a person has to ask
    on_request: str | None = None  # whom to ask, where there is no open address
    copy: str | None = None  # what reads a copy of the rows on the Hub, where the release is out of reach


TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
RELEASES = {
    corpus: Release(files=tuple(ReleasedFile(**file) for file in release.pop("files", ())), **release)
    for corpus, release in TABLE.items()
}


def locate(corpus: str, file: ReleasedFile) -> str:
    """Download address of a file: the published one, or its path under `HF_PARAPHRASE_DOWNLOADS`."""
    base = os.environ.get(DOWNLOADS)
    return f"{base.rstrip('/')}/{corpus}/{file.name}" if base else file.url
