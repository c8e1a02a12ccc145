"""The dataset card of an augmentation: counts, settings, and rejected candidates with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from huggingface_hub import DatasetCardData

from .. import __version__

if TYPE_CHECKING:
    from .run import Augmentation

CARD_FILE = "README.md"


def make_augmentation_card(
    asked: Augmentation,
    counts: Counter[str],
    title: str,
    files: Mapping[str, str] = MappingProxyType({"train": "data/train-*.parquet"}),
    sections: Mapping[str, tuple[str, str, dict[str, str]]] = MappingProxyType({}),
) -> str:
    """Write the card of the dataset `title`.

    Args:
        asked: What was asked.
        counts: What became of the rows.
        title: Name of the dataset.
        files: Those of each split.
        sections: Further ones: the heads of two columns, and their rows.
    """
    data_files = [{"split": split, "path": path} for split, path in files.items()]
    data = DatasetCardData(
        pretty_name=title,
        task_categories=["text-generation"],
        tags=["paraphrase", "synthetic", "hf_paraphrase"],
        configs=[{"config_name": "default", "data_files": data_files}],
    )
    settings: dict[str, Any] = {name: getattr(asked, name) for name in ("input", "model", "column", "n", "tasks")}
    for name in ("input", "model"):  # where things are on this machine is nobody else's
        settings[name] = Path(settings[name]).name if Path(settings[name]).exists() else settings[name]
    settings |= asked.options
    others = {name: getattr(asked, name) for name in ("keep_columns", "split", "backend")}
    settings |= {name: value for name, value in others.items() if value is not None}
    totals = {
        "source rows": counts["rows"],
        "paraphrases": counts["paraphrases"],
        "source rows with a paraphrase": counts["rows"] - counts["without"] - counts["failed"],
        "source rows of which no candidate passed": counts["without"],
        "source rows that failed": counts["failed"],
    }
    totals |= {kind: counts[kind] for kind in ("prompt tokens", "completion tokens") if counts[kind]}
    if counts["cut"]:
        totals["source rows longer than what the model reads (`max_source_length`)"] = counts["cut"]
    parts = [
        f"---\n{data}\n---",
        f"# {title}",
        f"Paraphrases of `{settings['input']}`, written by `{settings['model']}` with `hf-paraphrase augment` "
        f"(hf_paraphrase {__version__}). They are a model's, and nobody has checked them one by one.",
        "Each row is a paraphrase beside the columns of its source: `source_id` says where the source stands, `rank` "
        "is 1 for the best, and `score` puts `adequacy`, `fluency` and `novelty` into one. A source without a "
        "paraphrase has one row, whose `error` says why.",
        _section("Counts", "what", "number", {name: f"{value:,}" for name, value in totals.items()}),
        _section("Settings", "setting", "value", {name: f"`{value}`" for name, value in settings.items()}),
        _section("Rejected candidates", "reason", "candidates", _counted(counts, "rejected: ")),
    ]
    parts += [_section(name, *columns) for name, columns in sections.items()]
    if counts["failed"]:
        parts.append(_section("Failed rows", "error", "rows", _counted(counts, "failed: ")))
    return "\n\n".join(parts) + "\n"


def _counted(counts: Counter[str], kind: str) -> dict[str, str]:
    found = [(name.removeprefix(kind), value) for name, value in counts.items() if name.startswith(kind)]
    return {name: f"{value:,}" for name, value in sorted(found, key=lambda one: (-one[1], one[0]))}


def _section(title: str, left: str, right: str, rows: dict[str, str]) -> str:
    if not rows:
        return f"## {title}\n\nNone."
    lines = [f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows.items()]
    return "\n".join([f"## {title}\n", f"| {left} | {right} |", "|---|---|", *lines])
