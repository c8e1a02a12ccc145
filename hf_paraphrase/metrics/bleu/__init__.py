from __future__ import annotations

from ..scored import LOWERCASE, Scored

__all__ = ["SCORED"]

SCORED = Scored(("bleu_4", "bleu_2"), options=LOWERCASE)
