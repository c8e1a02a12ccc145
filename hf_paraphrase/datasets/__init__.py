"""The corpora of the papers, read from their published files."""

from __future__ import annotations

from .loading import list_datasets, load_dataset, make_builder

__all__ = ["list_datasets", "load_dataset", "make_builder"]
