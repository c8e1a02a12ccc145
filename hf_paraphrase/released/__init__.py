"""The model that comes with the package: what every command uses where no other is named.

Its weights travel as 8-bit numbers (`packing`). They are unpacked once into the Hugging Face cache as an ordinary
checkpoint, which everything that reads checkpoint folders can read.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from ..common.files import make_once, writable_folder

__all__ = ["RELEASED", "RELEASED_FOLDER", "find_checkpoint"]

RELEASED = "paraphraser-en-small"
RELEASED_FOLDER = Path(__file__).with_name("paraphraser_en_small")


def find_checkpoint(path: str | os.PathLike = RELEASED) -> str | os.PathLike:
    """Return the folder of the released model for its name, and any other path as it is.

    Args:
        path: A checkpoint folder, Hub repository or `RELEASED`; a folder called so is `./` and that name.
    """
    if os.fspath(path) == RELEASED:
        return str(_unpack_once(RELEASED_FOLDER))
    return path


@cache
def _unpack_once(packed: Path) -> Path:
    """The unpacked copy in the cache, made unless an earlier process made it from the same files."""
    from huggingface_hub.constants import HF_HOME

    digest = hashlib.sha256()
    for path in sorted(packed.iterdir()):
        digest.update(path.name.encode() + path.stat().st_size.to_bytes(8) + path.read_bytes())
    cached = writable_folder(Path(HF_HOME) / "hf_paraphrase" / "released") / digest.hexdigest()[:16]

    def write(empty: Path) -> None:
        from .packing import unpack

        unpack(packed, empty / RELEASED)

    make_once(cached, write)
    return cached / RELEASED
