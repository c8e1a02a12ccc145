"""t-SNE maps of vectors, as a picture and as a page that labels each point."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..common.files import script_json, write_text
from ..common.installation import require
from ..common.pictures import in_style, label_points, new_figure, save_figure, wrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most points that a picture names; more would hide each other.
NAMED = 60
PAGE = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")


def project(vectors: np.ndarray, perplexity: float = 30.0, seed: int = 0) -> np.ndarray:
    """Project vectors onto a plane by t-SNE, as in Traynor 2018, figures 4.1 to 4.10.

    Args:
        vectors: `(points, width)`.
        perplexity: Approximate number of neighbours that count; lowered if there are few points.
        seed: Of the optimisation.

    Returns:
        `(points, 2)`.

    Raises:
        InputError: Fewer than four points, or scikit-learn is not installed.
    """
    require("sklearn", "maps", "a map", package="scikit-learn")
    from sklearn.manifold import TSNE

    if len(vectors) < 4:
        raise InputError(f"a map needs at least four points, not {len(vectors)}")
    # Starting from principal components keeps the rough order of the whole, which t-SNE alone would not.
    tsne = TSNE(perplexity=min(perplexity, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    return tsne.fit_transform(np.asarray(vectors, dtype=np.float32))


def nearest(vectors: np.ndarray, center: np.ndarray, count: int) -> np.ndarray:
    """The rows of the `count` vectors nearest to `center` by Euclidean distance, the nearest first."""
    distances = np.linalg.norm(vectors - center, axis=1)
    return np.argsort(distances, kind="stable")[:count]


@in_style
def draw_map(
    points: np.ndarray, labels: Sequence[str], path: str | os.PathLike, title: str = "", center: int | None = None
) -> Figure:
    """Draw a map of points `(points, 2)` as PNG, and return it; of many some are named, spread over the map, where no
    name hides another. `center` is a point to mark."""
    # Labels are laid out by pixels, so that the axes must not move any more.
    figure = new_figure(12, 9, layout=None)
    axes = figure.add_axes((0.01, 0.04, 0.98, 0.89), xticks=[], yticks=[], frame_on=False)
    axes.margins(0.03)
    axes.scatter(points[:, 0], points[:, 1], s=max(0.5, min(12, 20_000 / len(points))), linewidths=0, alpha=0.3)
    axes.autoscale_view()
    axes.set_autoscale_on(False)
    chosen = [place for place in spread(points, NAMED) if place != center]
    shown = points[chosen]
    styles: list[dict[str, Any]] = [{} for _ in chosen]
    if center is not None:
        axes.scatter(points[center, 0], points[center, 1], marker="*", s=90, color="C3")
        chosen, styles = [center, *chosen], [{"fontsize": 9, "color": "C3"}, *styles]
    axes.scatter(shown[:, 0], shown[:, 1], s=12, color="C0", linewidths=0)
    names = [shorten(labels[place]) for place in chosen]
    named = label_points(axes, points[chosen], names, obstacles=points[chosen], styles=styles)
    axes.set_title(wrap(title, 120), parse_math=False)
    if len(named) < len(points):
        axes.set_xlabel(f"{len(named)} of {len(points):,} points are named", fontsize=9)
    save_figure(figure, path)
    return figure


def spread(points: np.ndarray, count: int) -> list[int]:
    """At most `count` points, each the first in a cell of a grid over the map."""
    if len(points) <= count:
        return list(range(len(points)))
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-9) * (count**0.5 - 1e-6)).astype(int)
    _, first = np.unique(cells, axis=0, return_index=True)
    return sorted(first.tolist())[:count]


def shorten(label: str, length: int = 48) -> str:
    """A label on one line."""
    text = " ".join(label.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def write_map_page(points: np.ndarray, labels: Sequence[str], path: str | os.PathLike, title: str = "") -> None:
    """Write a map of points `(points, 2)` as one HTML file without anything from elsewhere: wheel zooms, dragging
    moves, pointing names."""
    low, high = points.min(axis=0), points.max(axis=0)
    unit = ((points - low) / np.maximum(high - low, 1e-9)).round(5).tolist()
    rows = [[x, y, label] for (x, y), label in zip(unit, labels, strict=True)]
    # Not one after the other: a title may hold what stands for the data.
    parts = {"%TITLE%": escape(title), "%DATA%": script_json(rows)}
    write_text(Path(path), re.sub("|".join(parts), lambda found: parts[found[0]], PAGE))
