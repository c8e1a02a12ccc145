"""Tables of the papers made again: trained, evaluated, and their claims judged."""

from __future__ import annotations

from .report import write_reproduction
from .tables import reproduce

__all__ = ["reproduce", "write_reproduction"]
