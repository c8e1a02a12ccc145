from __future__ import annotations

from importlib.metadata import version
from typing import Any

import yaml

__all__ = ["make_front_matter"]


def make_front_matter(title: str, emoji: str, **more: Any) -> str:
    """The metadata above the card of a Space whose `app.py` runs the Gradio that is installed here.

    Args:
        title: Of the Space.
        emoji: Its sign on the Hub.
        more: Further metadata.
    """
    metadata = {
        "title": title,
        "emoji": emoji,
        "colorFrom": "blue",
        "colorTo": "green",
        "sdk": "gradio",
        "sdk_version": version("gradio"),
        "app_file": "app.py",
        **more,
    }
    return f"---\n{yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)}---\n"
