"""Paraphrases of whole corpora: in one process, or as datatrove steps on many machines."""

from __future__ import annotations

from .outcomes import augment

__all__ = ["augment"]
