from __future__ import annotations

from ..scored import LOWERCASE, Scored

__all__ = ["SCORED"]

SCORED = Scored(("ibleu",), inputs=("references", "sources"), options=LOWERCASE)
