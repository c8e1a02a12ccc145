from __future__ import annotations

from ..scored import LOWERCASE, Scored

__all__ = ["SCORED"]

SCORED = Scored(("pinc",), inputs=("sources",), options=LOWERCASE)
