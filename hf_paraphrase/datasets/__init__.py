"""The corpora of the papers, read from their published files."""

from __future__ import annotations

from .card import dataset_card, push_to_hub
from .loading import list_datasets, load_dataset, make_builder

__all__ = ["dataset_card", "list_datasets", "load_dataset", "make_builder", "push_to_hub"]
