from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from .encoders import SentenceEncoder, load_encoder
from .pairs import map_once

logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 10_000


def filter_by_cosine(
    rows: datasets.Dataset, encoder: str | os.PathLike, min_cosine: float, *, trust_remote_code: bool = False
) -> datasets.Dataset:
    """Leave out the pairs whose two sentences a sentence encoder finds too little alike.

    The cosines are computed once and cached by datasets, keyed by the pairs and the encoder's files: another
    `min_cosine` computes nothing. A sentence that several neighbouring pairs share is encoded once.

    Args:
        rows: Has the columns `source` and `target`.
        encoder: A folder or Hub repository, as `load_encoder` takes it.
        min_cosine: Pairs of a lower cosine are left out.
        trust_remote_code: Let the repository's own code run.

    Raises:
        InputError: The encoder cannot be loaded.
    """

    @cache
    def load() -> SentenceEncoder:
        return load_encoder(encoder, trust_remote_code=trust_remote_code)

    def score(columns: dict[str, list[str]]) -> dict[str, np.ndarray]:
        texts = {text: place for place, text in enumerate(dict.fromkeys([*columns["source"], *columns["target"]]))}
        vectors = load()(list(texts))
        sides = [vectors[[texts[text] for text in columns[name]]] for name in ("source", "target")]
        return {"cosine": (sides[0] * sides[1]).sum(axis=1)}

    pairs = rows.select_columns(["source", "target"])
    features = datasets.Features({"cosine": datasets.Value("float32")})
    options = {"batch_size": ROWS_AT_ONCE, "features": features, "desc": "Comparing meanings"}
    scored = map_once(pairs, score, "cosines", _state(encoder), **options)
    kept: list[int] | np.ndarray = []
    if len(rows):
        kept = np.flatnonzero(scored.with_format("numpy")["cosine"][:] >= min_cosine)
    if len(kept) < len(rows):
        message = "left out %d of %d pairs, whose cosine by %s is below %g"
        logger.warning(message, len(rows) - len(kept), len(rows), encoder, min_cosine)
    return rows.select(kept)


def _state(encoder: str | os.PathLike) -> str:
    """The name of an encoder, and of a folder the sizes of its files and when they changed."""
    files: list[Any] = []
    if Path(encoder).is_dir():
        paths = sorted(path for path in Path(encoder).rglob("*") if path.is_file())
        files = [(str(path.relative_to(encoder)), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return repr([os.fspath(encoder), files])
