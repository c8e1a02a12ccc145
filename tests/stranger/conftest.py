"""`tree` holds templates: their tests run in a copy of the repository, where they have moved in."""

from __future__ import annotations

collect_ignore = ["tree"]
