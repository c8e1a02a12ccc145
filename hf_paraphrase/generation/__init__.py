"""Generating and choosing candidates: diverse decoding of any model, and selection among the candidates."""

from __future__ import annotations

from ..models.search.dips import dips
from ..models.search.diverse_beam_search import diverse_beam_search
from .selection import select_candidates

__all__ = ["dips", "diverse_beam_search", "select_candidates"]
