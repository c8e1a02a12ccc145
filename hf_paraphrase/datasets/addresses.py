"""Where the corpora are published, and how they are downloaded: `addresses.yaml` says where, under which licence, and
whom to ask for access."""

from __future__ import annotations

import fnmatch
import logging
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import datasets

from ..common.errors import InputError
from ..common.fields import read_yaml
from ..common.files import hash_file, make_once

logger = logging.getLogger(__name__)

# The environment variable that names another place for all of them: an address or a folder in which each corpus has a
# folder of its name with the files as they are released, such as mscoco/annotations_trainval2014.zip.
DOWNLOADS = "HF_PARAPHRASE_DOWNLOADS"
ARCHIVES = (".zip", ".tar.gz", ".tgz")
# Seconds. A release may take an hour to come, but never a minute to say nothing.
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
FAILURES = (OSError, EOFError, aiohttp.ClientError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


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

    def fill(self, *fields: dict[str, Any]) -> Release:
        """The release of a corpus whose one address has parts in braces: a file for each way to fill them."""
        (file,) = self.files
        return replace(self, files=tuple(replace(file, url=file.url.format(**one)) for one in fields))


RELEASES = {
    corpus: Release(files=tuple(ReleasedFile(**file) for file in release.pop("files", ())), **release)
    for corpus, release in read_yaml(Path(__file__).with_suffix(".yaml")).items()
}


def locate(corpus: str, file: ReleasedFile) -> str:
    """Download address of a file: the published one, or its path under `HF_PARAPHRASE_DOWNLOADS`."""
    base = os.environ.get(DOWNLOADS)
    return f"{base.rstrip('/')}/{corpus}/{file.name}" if base else file.url


def download_release(corpus: str, release: Release, patterns: Sequence[str], cache_dir: str | os.PathLike) -> Path:
    """Download a corpus's published files, once, into the cache of datasets; of archives only the names of `patterns`.

    Returns:
        A folder that holds the files, as `data_dir` would.

    Raises:
        InputError: A file is out of reach, damaged, or another than the one expected.
    """
    urls = [locate(corpus, file) for file in release.files]
    digest = sha256("\n".join(urls).encode()).hexdigest()[:16]
    folder = Path(cache_dir, f"{corpus}-{digest}")

    def fill(place: Path) -> None:
        logger.warning("%s: licence: %s; downloading %s", corpus, release.licence, ", ".join(urls))
        paths = {url: _fetch(file, url, cache_dir) for file, url in zip(release.files, urls, strict=True)}
        _arrange(place, paths, {Path(pattern).name for pattern in patterns})

    make_once(folder, fill)
    return folder


def _fetch(file: ReleasedFile, url: str, cache_dir: str | os.PathLike) -> Path:
    config = datasets.DownloadConfig(
        cache_dir=cache_dir,
        # A release does not change, and the copy in the cache serves where the network is gone.
        use_etag=False,
        download_desc=file.name,
        storage_options={protocol: {"client_kwargs": {"timeout": TIMEOUT}} for protocol in ("http", "https")},
    )
    try:
        path = Path(datasets.DownloadManager(download_config=config).download(url))
    except FAILURES as error:
        # The cause has the reason; fsspec reports every failure as a missing file.
        cause = error.__cause__ or error
        raise InputError(f"{url} cannot be downloaded ({type(cause).__name__}: {cause})") from error
    size, problem = path.stat().st_size, ""
    if file.size not in (None, size):
        problem = f"has {size:,} bytes, not {file.size:,}"
    elif file.sha256 is not None and hash_file(path) != file.sha256:
        problem = f"has the SHA-256 {hash_file(path)}, not {file.sha256}"
    if problem:
        _discard(path, url)
        raise InputError(f"{url} {problem}: it is damaged, or not the release that is known")
    return path


def _discard(path: Path, url: str) -> None:
    """Remove a damaged download, which the next attempt would find in the cache; a user's own file stays."""
    if str(path) != url:
        path.unlink()


def _arrange(folder: Path, paths: dict[str, Path], names: set[str]) -> None:
    """Write what was downloaded into a folder as the corpus is read from one."""
    for url, path in paths.items():
        if not url.endswith(ARCHIVES):
            shutil.copyfile(path, folder / Path(url).name)
            continue
        try:
            for member, content in datasets.DownloadManager().iter_archive(str(path)):
                name = Path(member).name  # wherever in the archive it is
                if any(fnmatch.fnmatch(name, pattern) for pattern in names):
                    with (folder / name).open("wb") as file:
                        shutil.copyfileobj(content, file)
        except FAILURES as error:
            _discard(path, url)
            raise InputError(f"{url} is a damaged archive ({error})") from error
    if not any(folder.iterdir()):
        raise InputError(f"{', '.join(paths)} holds none of {', '.join(sorted(names))}")
