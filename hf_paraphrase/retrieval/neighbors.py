from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets
import xxhash

from ..errors import InputError

if TYPE_CHECKING:
    from .retriever import ParaphraseRetriever

__all__ = ["add_neighbors"]

FEATURES = datasets.Features(
    {
        "retrieved_sources": datasets.List(datasets.Value("string")),
        "retrieved_targets": datasets.List(datasets.Value("string")),
        "retrieved_scores": datasets.List(datasets.Value("float32")),
    }
)
# Rows that are searched for at once, and that a file of the cache has.
ROWS_AT_ONCE, ROWS_A_FILE = 1000, 20_000


def add_neighbors(retriever: ParaphraseRetriever, dataset: datasets.Dataset, k: int) -> datasets.Dataset:
    """Add the nearest pairs of each row as columns; see `ParaphraseRetriever.neighbors`."""
    if "source" not in dataset.column_names:
        raise InputError(f"`dataset` has no column source, only {', '.join(dataset.column_names)}")
    texts = dataset.with_format(None).select_columns(
        [name for name in ("source", "target") if name in dataset.column_names]
    )
    starts = range(0, len(dataset), ROWS_A_FILE)
    parts = [
        _find(
            retriever,
            texts.select(range(start, min(start + ROWS_A_FILE, len(dataset)))),
            k,
            f"neighbors, part {part} of {len(starts)}",
        )
        for part, start in enumerate(starts, 1)
    ]
    dataset = dataset.remove_columns([name for name in FEATURES if name in dataset.column_names])
    if not parts:
        features = datasets.Features({**dataset.features, **FEATURES})
        return datasets.Dataset.from_dict({name: [] for name in features}, features=features)
    return datasets.concatenate_datasets([dataset, datasets.concatenate_datasets(parts)], axis=1)


def _find(retriever: ParaphraseRetriever, texts: datasets.Dataset, k: int, description: str) -> datasets.Dataset:
    """Find the neighbours of some rows, or read them where they were found before."""

    def find(batch: dict[str, list[str]]) -> dict[str, list[list[Any]]]:
        found = retriever.retrieve(batch["source"], k, exclude=batch.get("target"))
        return {
            "retrieved_sources": [[pair.source for pair in pairs] for pairs in found],
            "retrieved_targets": [[pair.target for pair in pairs] for pairs in found],
            "retrieved_scores": [[pair.score for pair in pairs] for pairs in found],
        }

    # All that the result depends on, where datasets would hash the function with the whole memory in it.
    key = xxhash.xxh3_64(retriever.fingerprint.encode())
    key.update(repr([k, *(texts[name][:] for name in texts.column_names)]).encode())
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "neighbors"
    folder.mkdir(parents=True, exist_ok=True)
    return texts.map(
        find,
        batched=True,
        batch_size=ROWS_AT_ONCE,
        remove_columns=texts.column_names,
        features=FEATURES,
        cache_file_name=str(folder / f"{key.hexdigest()}.arrow"),
        new_fingerprint=key.hexdigest(),
        desc=description,
    )
