"""t-SNE maps of vectors, as a picture and as a page that labels each point."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.files import script_json, write_text
from ..errors import InputError
from ..installation import require
from ..pictures import in_style, label_points, new_figure, save_figure, wrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_map", "make_map", "nearest", "project", "write_map_page"]

# Most points that a picture names; more would hide each other.
NAMED = 60


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
) -> None:
    """Draw a map as PNG; of many points some are named, spread over the map, where no name hides another.

    Args:
        points: `(points, 2)`.
        labels: What each is.
        path: The file to write.
        title: Stands above.
        center: A point to mark.
    """
    save_figure(make_map(points, labels, title, center), path)


@in_style
def make_map(points: np.ndarray, labels: Sequence[str], title: str = "", center: int | None = None) -> Figure:
    """The figure that `draw_map` writes; arguments as there."""
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
    """Write a map as one HTML file without anything from elsewhere: wheel zooms, dragging moves, pointing names.

    Args:
        points: `(points, 2)`.
        labels: What each is.
        path: The file to write.
        title: Of the page.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    unit = ((points - low) / np.maximum(high - low, 1e-9)).round(5).tolist()
    rows = [[x, y, label] for (x, y), label in zip(unit, labels, strict=True)]
    # Not one after the other: a title may hold what stands for the data.
    parts = {"%TITLE%": escape(title), "%DATA%": script_json(rows)}
    write_text(Path(path), re.sub("|".join(parts), lambda found: parts[found[0]], PAGE))


PAGE = """<!doctype html>
<meta charset="utf-8">
<title>%TITLE%</title>
<style>
  :root { color-scheme: light dark }
  body { margin: 0; font: 14px sans-serif; overflow: hidden }
  canvas { display: block; cursor: crosshair }
  #label { position: fixed; padding: 2px 6px; background: canvas; border: 1px solid #999; pointer-events: none }
  #find { position: fixed; top: 8px; left: 8px }
</style>
<input id="find" placeholder="find" aria-label="Find a point">
<div id="label" hidden></div>
<canvas></canvas>
<script>
const points = %DATA%
const canvas = document.querySelector("canvas"), label = document.getElementById("label")
const find = document.getElementById("find"), context = canvas.getContext("2d")
let scale = 1, left = 0, top_ = 0, wanted = ""
const side = () => Math.min(innerWidth, innerHeight) * 0.95
const place = ([x, y]) => [left + x * side() * scale, top_ + y * side() * scale]
function draw() {
  canvas.width = innerWidth
  canvas.height = innerHeight
  const named = []
  for (const point of points) {
    const [x, y] = place(point), found = wanted && point[2].toLowerCase().includes(wanted)
    if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue
    context.fillStyle = found ? "#e5484d" : "#3b82f680"
    const size = found ? 6 : 3
    context.fillRect(x - size / 2, y - size / 2, size, size)
    if (found) named.unshift([x + 4, y, point[2].slice(0, 60), "#e5484d"])
    else if (scale > 12) named.push([x + 4, y, point[2].slice(0, 60), "#3b82f6"])
  }
  name(named)
}
// Those that are looked for come first; a name that would hide another waits until one looks closer.
function name(named) {
  const taken = []
  for (const [x, y, text, color] of named) {
    const right = x + context.measureText(text).width
    if (taken.some(([l, t, r]) => x < r && right > l && Math.abs(y - t) < 12)) continue
    taken.push([x, y, right])
    context.fillStyle = color
    context.fillText(text, x, y)
  }
}
function nearest(event) {
  let best = null, distance = 400
  for (const point of points) {
    const [x, y] = place(point), d = (x - event.clientX) ** 2 + (y - event.clientY) ** 2
    if (d < distance) [best, distance] = [point, d]
  }
  return best
}
canvas.onmousemove = event => {
  if (event.buttons) {
    left += event.movementX
    top_ += event.movementY
    return draw()
  }
  const point = nearest(event)
  label.hidden = !point
  if (!point) return
  label.textContent = point[2]
  label.style.left = event.clientX + 12 + "px"
  label.style.top = event.clientY + 12 + "px"
}
canvas.onwheel = event => {
  const factor = Math.exp(-event.deltaY / 400)
  left = event.clientX + (left - event.clientX) * factor
  top_ = event.clientY + (top_ - event.clientY) * factor
  scale *= factor
  event.preventDefault()
  draw()
}
find.oninput = () => { wanted = find.value.toLowerCase(); draw() }
onresize = draw
left = (innerWidth - side()) / 2
draw()
</script>
"""
