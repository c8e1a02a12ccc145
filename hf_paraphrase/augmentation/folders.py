"""Files in folders of this machine or an object store, which appear whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from datatrove.io import DataFolder

from ..common.files import publish
from ..common.hub_access import retry

__all__ = ["clean_up", "whole_in_folder", "write_in_folder"]


@contextmanager
def whole_in_folder(folder: DataFolder, name: str) -> Iterator[Path]:
    """Write a file to a folder, here or where fsspec reaches, atomically even when several processes write it.

    Yields where to write it. As the `with` block ends, unless by an error, it is put in its place: on this machine by
    being renamed, after it is flushed to the disk, and elsewhere as one upload.
    """
    if not folder.is_local():
        with tempfile.TemporaryDirectory() as workplace:
            path = Path(workplace) / "whole"
            yield path
            retry(lambda: folder.put_file(str(path), name))
        return
    path = Path(folder.resolve_paths(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: a task that another machine was thought to have lost may still be written there.
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        yield temporary
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_in_folder(folder: DataFolder, name: str, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with whole_in_folder(folder, name) as path:
        path.write_text(text, encoding="utf-8")


def clean_up(folder: DataFolder, name: str) -> None:
    """Remove what killed processes have left in a folder of a folder, which they do on this machine alone."""
    if folder.is_local():
        for path in Path(folder.resolve_paths(name)).glob(".*.part"):
            path.unlink(missing_ok=True)
