"""A metric as a Space of the Hub, from which `evaluate.load("you/pinc")` loads it."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..common.docstrings import read_docstring
from ..common.installation import find_public_requirement
from .files import read_template

if TYPE_CHECKING:
    from ..metrics.checked_metric import CheckedMetric

APP = """from hf_paraphrase.serving.metric_page import launch_metric

launch_metric({name!r})
"""
CARD = read_template("metric_card.md")
SIGNATURE = "\n\n`signature` is everything that decides the scores: compare only scores with equal signatures."


def make_metric_space(metric: CheckedMetric, repo_id: str) -> dict[str, str]:
    """The files of a metric's Space `repo_id`: its module, its card, and a page to try it out."""
    return {
        f"{repo_id.rpartition('/')[2]}.py": Path(inspect.getfile(type(metric))).read_text(encoding="utf-8"),
        "README.md": make_metric_card(metric, repo_id),
        "app.py": APP.format(name=metric.function.__name__),
        "requirements.txt": f"{find_public_requirement('demo,metrics')}\n",
    }


def make_metric_card(metric: CheckedMetric, repo_id: str) -> str:
    """The card of a metric's Space, made from the docstring of its plain function."""
    card = read_docstring(metric.function)
    title, _, summary = card.summary.partition(": ")
    summary = summary[0].upper() + summary[1:]
    parameters = inspect.signature(metric.function).parameters.values()
    name = metric.function.__name__
    return CARD.format(
        front=make_front_matter(
            title, "📏", description=summary, tags=["evaluate", "metric", "paraphrase"], license="apache-2.0"
        ),
        title=title,
        requirement=find_public_requirement("metrics"),
        description=f"{summary}\n\n{card.details}".strip(),
        example=card.sections["Examples"].replace(f'load_metric("{name}")', f'evaluate.load("{repo_id}")'),
        module=metric.function.__module__,
        name=name,
        arguments="\n".join(_make_row(parameter, card.arguments) for parameter in parameters),
        returns=card.sections["Returns"],
        signature=SIGNATURE if "`signature`" in card.sections["Returns"] else "",
        limits=card.sections["Limits"],
        source=card.sections.get("Source", ""),
        citation=metric.citation,
    )


def _make_row(parameter: inspect.Parameter, described: dict[str, str]) -> str:
    default = "" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
    return f"| `{parameter.name}` | {default} | {described[parameter.name]} |"


def make_front_matter(title: str, emoji: str, **more: Any) -> str:
    """The metadata above the card of a Space whose `app.py` runs the Gradio that is installed here.

    `emoji` is its sign on the Hub, `more` further metadata.
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
