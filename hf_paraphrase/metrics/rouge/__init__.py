from __future__ import annotations

from ..scored import Scored

__all__ = ["SCORED"]

SCORED = Scored(("rouge1", "rouge2", "rougeL", "rougeW"))
