"""The corpora of the papers, read from their published files.

Names are loaded on first use: paraphrasing needs the sentence rules, but not `datasets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names

if TYPE_CHECKING:
    from .card import dataset_card, push_to_hub
    from .loading import list_datasets, load_dataset, make_builder

__all__ = ["dataset_card", "list_datasets", "load_dataset", "make_builder", "push_to_hub"]

MODULES = dict.fromkeys(("list_datasets", "load_dataset", "make_builder"), "loading")
__getattr__ = lazy_names(__name__, MODULES | {"dataset_card": "card", "push_to_hub": "card"})
