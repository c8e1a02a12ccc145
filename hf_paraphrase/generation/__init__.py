"""What to do with a model's candidates: choosing among them."""

from __future__ import annotations

from .selection import select_candidates

__all__ = ["select_candidates"]
