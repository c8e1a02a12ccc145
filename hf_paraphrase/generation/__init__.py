"""What makes and chooses candidates: diverse decoding of any model, and choosing among what was written."""

from __future__ import annotations

from ..models.search.dips import dips
from ..models.search.diverse_beam_search import diverse_beam_search
from .selection import select_candidates

__all__ = ["dips", "diverse_beam_search", "select_candidates"]
