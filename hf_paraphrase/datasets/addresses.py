"""Where the corpora are published: `addresses.yaml` has addresses, licences and whom to ask for access."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
class HubCopy:
    """A copy of a corpus's rows on the Hub, for `load_dataset` to read where the release is out of reach."""

    path: str  # the dataset repository
    name: str  # its configuration
    revision: str  # the commit that was looked at
    columns: dict[str, str]  # column names here and in the published dataset

    def call(self) -> str:
        return f"load_dataset({self.path!r}, {self.name!r}, revision={self.revision!r}, columns={self.columns!r})"


@dataclass(frozen=True)
class Release:
    """How a corpus is given out."""

    licence: str  # named before anything is downloaded
    files: tuple[ReleasedFile, ...] = ()  # what to download; nothing where a person has to ask
    on_request: str | None = None  # whom to ask, where there is no open address
    copy: HubCopy | None = None  # a second source


def _read_release(licence: str, files: Iterable[dict] = (), copy: dict | None = None, **others: str) -> Release:
    return Release(
        licence,
        tuple(ReleasedFile(**file) for file in files),
        copy=None if copy is None else HubCopy(**copy),
        **others,
    )


TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
RELEASES: dict[str, Release] = {corpus: _read_release(**release) for corpus, release in TABLE.items()}


def locate(corpus: str, file: ReleasedFile) -> str:
    """Download address of a file: the published one, or its path under `HF_PARAPHRASE_DOWNLOADS`."""
    base = os.environ.get(DOWNLOADS)
    return f"{base.rstrip('/')}/{corpus}/{file.name}" if base else file.url
