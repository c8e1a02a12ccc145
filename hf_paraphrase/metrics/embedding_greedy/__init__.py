from __future__ import annotations

from ..scored import LOWERCASE, Scored

__all__ = ["SCORED"]

SCORED = Scored(("embedding_greedy", "embedding_average", "embedding_extrema"), options=LOWERCASE)
