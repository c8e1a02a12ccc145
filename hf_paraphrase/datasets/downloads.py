from __future__ import annotations

import fnmatch
import hashlib
import logging
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import datasets
from filelock import FileLock

from ..common.files import write_directory
from ..errors import InputError
from .addresses import Release, ReleasedFile, locate

logger = logging.getLogger(__name__)

ARCHIVES = (".zip", ".tar.gz", ".tgz")
# Seconds. A release may take an hour to come, but never a minute to say nothing.
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
FAILURES = (OSError, EOFError, aiohttp.ClientError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def download_release(corpus: str, release: Release, patterns: Sequence[str], cache_dir: str | os.PathLike) -> Path:
    """Download a corpus's published files, once, into the cache of datasets; of archives only the names of `patterns`.

    Returns:
        A folder that holds the files, as `data_dir` would.

    Raises:
        InputError: A file is out of reach, damaged, or another than the one expected.
    """
    urls = [locate(corpus, file) for file in release.files]
    digest = hashlib.sha256("\n".join(urls).encode()).hexdigest()[:16]
    folder = Path(cache_dir, f"{corpus}-{digest}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            logger.warning("%s: licence: %s; downloading %s", corpus, release.licence, ", ".join(urls))
            names = {Path(pattern).name for pattern in patterns}
            paths = {url: _fetch(file, url, cache_dir) for file, url in zip(release.files, urls, strict=True)}
            write_directory(folder, lambda place: _arrange(place, paths, names))
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
    problem = _difference(file, path)
    if problem:
        _discard(path, url)
        raise InputError(f"{url} {problem}: it is damaged, or not the release that is known")
    return path


def _difference(file: ReleasedFile, path: Path) -> str | None:
    size = path.stat().st_size
    if file.size not in (None, size):
        return f"has {size:,} bytes, not {file.size:,}"
    if file.sha256 is None:
        return None
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return None if digest == file.sha256 else f"has the SHA-256 {digest}, not {file.sha256}"


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
            _unpack(path, folder, names)
        except FAILURES as error:
            _discard(path, url)
            raise InputError(f"{url} is a damaged archive ({error})") from error
    if not any(folder.iterdir()):
        raise InputError(f"{', '.join(paths)} holds none of {', '.join(sorted(names))}")


def _unpack(archive: Path, folder: Path, names: set[str]) -> None:
    """Write the members of these names, wherever in the archive they are."""
    for member, content in datasets.DownloadManager().iter_archive(str(archive)):
        name = Path(member).name
        if any(fnmatch.fnmatch(name, pattern) for pattern in names):
            with (folder / name).open("wb") as file:
                shutil.copyfileobj(content, file)
