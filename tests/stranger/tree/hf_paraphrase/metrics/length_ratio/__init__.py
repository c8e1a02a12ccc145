from __future__ import annotations

from ..scored import Scored

__all__ = ["SCORED"]

SCORED = Scored(("length_ratio",), inputs=("sources",))
