"""Maps of many vectors: t-SNE, drawn as a picture and as a page that tells what each point is."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from .errors import InputError
from .files import write_text

__all__ = ["draw_map", "nearest", "project", "write_map_page"]

# Most points that a picture names; more would hide each other.
NAMED = 60


def project(vectors: np.ndarray, perplexity: float = 30.0, seed: int = 0) -> np.ndarray:
    """Lay vectors out on a plane by t-SNE, near ones near each other, as Traynor 2018, figures 4.1 to 4.10.

    Args:
        vectors: `(points, width)`.
        perplexity: About how many neighbours of a point count; fewer where there are few points.
        seed: Of the optimisation.

    Returns:
        `(points, 2)`.

    Raises:
        InputError: If there are fewer than four points, or scikit-learn is not installed.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise InputError("maps need scikit-learn; install it with: pip install 'hf-paraphrase[maps]'") from error
    if len(vectors) < 4:
        raise InputError(f"a map needs at least four points, not {len(vectors)}")
    # Starting from principal components keeps the rough order of the whole, which t-SNE alone would not.
    tsne = TSNE(perplexity=min(perplexity, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    return tsne.fit_transform(np.asarray(vectors, dtype=np.float32))


def nearest(vectors: np.ndarray, center: np.ndarray, count: int) -> np.ndarray:
    """The rows of the `count` vectors nearest to `center` by Euclidean distance, the nearest first."""
    distances = np.linalg.norm(vectors - center, axis=1)
    return np.argsort(distances, kind="stable")[:count]


def draw_map(
    points: np.ndarray, labels: Sequence[str], path: str | os.PathLike, title: str = "", center: int | None = None
) -> None:
    """Draw a map as PNG; of many points some are named, spread over the map.

    Args:
        points: `(points, 2)`.
        labels: What each is.
        path: The file to write.
        title: Stands above.
        center: A point to mark.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    axes = figure.subplots()
    axes.scatter(*points.T, s=max(0.5, min(12, 20_000 / len(points))), linewidths=0, alpha=0.5)
    for place in spread(points, NAMED):
        axes.annotate(shorten(labels[place]), points[place], fontsize=7, ha="center")
    if center is not None:
        axes.scatter(*points[center], marker="*", s=160, color="tab:red")
        axes.annotate(shorten(labels[center]), points[center], fontsize=9, color="tab:red")
    axes.set(xticks=[], yticks=[], title=title)
    temporary = Path(path).with_name(f".{Path(path).name}.part")
    FigureCanvasAgg(figure).print_png(temporary)
    os.replace(temporary, path)


def spread(points: np.ndarray, count: int) -> list[int]:
    """At most `count` points, each the first in a cell of a grid over the map, so that their names do not collide."""
    if len(points) <= count:
        return list(range(len(points)))
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-9) * (count**0.5 - 1e-6)).astype(int)
    _, first = np.unique(cells, axis=0, return_index=True)
    return sorted(first.tolist())[:count]


def shorten(label: str, length: int = 48) -> str:
    """A label on one line; a `$` would begin a formula."""
    text = " ".join(label.split()).replace("$", r"\$")
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
    # `</` in a label would end the script.
    data = json.dumps(rows, ensure_ascii=False).replace("</", "<\\/")
    write_text(Path(path), PAGE.replace("%TITLE%", escape(title)).replace("%DATA%", data))


PAGE = """<!doctype html>
<meta charset="utf-8">
<title>%TITLE%</title>
<style>
  body { margin: 0; font: 14px sans-serif; overflow: hidden }
  canvas { display: block; cursor: crosshair }
  #label { position: fixed; padding: 2px 6px; background: #fffd; border: 1px solid #999; pointer-events: none }
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
  for (const point of points) {
    const [x, y] = place(point), found = wanted && point[2].toLowerCase().includes(wanted)
    if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue
    context.fillStyle = found ? "#d62728" : "#1f77b480"
    const size = found ? 6 : 3
    context.fillRect(x - size / 2, y - size / 2, size, size)
    if (found || scale > 12) context.fillText(point[2].slice(0, 60), x + 4, y)
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
