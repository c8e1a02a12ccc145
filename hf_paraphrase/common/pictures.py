"""Shared by all figures: style, saving, plain ticks, legends and labels that do not overlap."""

from __future__ import annotations

import functools
import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from .files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_suffix(".mplstyle")
Draw = TypeVar("Draw", bound=Callable[..., Any])

# In pixels: between a point and its label, between two labels, and between the lines that a label may move to.
GAP, MARGIN, STEP = 7, 2, 9
# A label farther from its point than this is tied to it by a line.
TIED = 12
# So many lines up or down a label may move.
REACH = 16


def in_style(draw: Draw) -> Draw:
    """Decorator for functions that draw and save a figure: applies the common style.

    What colours and widths are is looked up while something is drawn, and in part only when it is saved. The caller's
    own style is unchanged.
    """

    @functools.wraps(draw)
    def draw_in_style(*args: Any, **kwargs: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(fname=STYLE):
            return draw(*args, **kwargs)

    return cast(Draw, draw_in_style)


def new_figure(
    width: float = 7, height: float = 4.5, layout: Literal["constrained", "tight"] | None = "constrained"
) -> Figure:
    """A figure, in inches, that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike) -> None:
    """Write a figure as PNG, whole or not at all."""
    with whole_file(Path(path)) as temporary:
        cast("FigureCanvasAgg", figure.canvas).print_png(temporary)


def wrap(text: str, width: int, lines: int = 2) -> str:
    """Wrap a text to a maximum number of lines and characters."""
    return "\n".join(textwrap.wrap(text, width, max_lines=lines, placeholder=" …"))


def add_legend(axes: Axes, lines: Sequence[Any] | None = None) -> None:
    """Put a legend below the figure, which grows, so that no curve is hidden.

    Args:
        axes: Of a figure with constrained layout.
        lines: What is named; None for all labelled artists.
    """
    figure = cast("Figure", axes.figure)
    lines = axes.get_legend_handles_labels()[0] if lines is None else lines
    labels = [wrap(str(line.get_label()), 78) for line in lines]
    columns = 2 if max(map(len, labels)) < 36 else 1
    rows = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.22 * rows + 0.15)
    legend = figure.legend(lines, labels, loc="outside lower center", ncols=columns)
    for text in legend.get_texts():
        text.set_parse_math(False)


def curve_style(number: int) -> dict[str, Any]:
    """Colour and mark of one of many curves or dots; the ten colours come again with another mark."""
    return {"color": f"C{number % 10}", "marker": "os^D"[number // 10 % 4]}


def tick_plainly(axis: Axis) -> None:
    """Name the ticks of a logarithmic axis as people do: 2, 5, 10, 20, and not 2 × 10⁰.

    Called after drawing: short log axes get even ticks, since they contain no powers of ten.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

    low, high = axis.get_view_interval()
    short = high < 8 * low
    axis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]) if short else LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
    axis.set_minor_formatter(NullFormatter())
    if short:
        axis.set_minor_locator(NullLocator())


def label_points(
    axes: Axes,
    points: np.ndarray,
    labels: Sequence[str],
    *,
    obstacles: np.ndarray | None = None,
    styles: Sequence[dict[str, Any]] | None = None,
) -> list[int]:
    """Label points; labels that would overlap or leave the axes are dropped.

    Each takes the nearest free place beside, above or below its point; a line connects labels that had to move away.

    Args:
        axes: Whose limits and place in the figure are set for good.
        points: `(points, 2)`.
        labels: One each; the first come first.
        obstacles: `(n, 2)` points that no label may hide.
        styles: For each label what `annotate` takes further.

    Returns:
        The placed labels, by number.
    """
    to_pixels = axes.transData.transform
    window = np.array(axes.get_window_extent().extents) + (MARGIN, MARGIN, -MARGIN, -MARGIN)
    hidden = np.empty((0, 2)) if obstacles is None else to_pixels(obstacles)
    taken = np.concatenate((hidden - MARGIN, hidden + MARGIN), axis=1)
    named = []
    for number, (point, label) in enumerate(zip(points, labels, strict=True)):
        style = {"fontsize": 7, **(styles[number] if styles else {})}
        size = _measure(axes, label, style)
        x, y = to_pixels(point)
        for dx, dy in _places(*size):
            box = np.array((x + dx, y + dy, x + dx + size[0], y + dy + size[1]))
            if (box[:2] < window[:2]).any() or (box[2:] > window[2:]).any() or _overlaps(box, taken):
                continue
            where: dict[str, Any] = {"ha": "left", "va": "bottom", "textcoords": "offset pixels"}
            axes.annotate(label, point, (dx, dy), parse_math=False, zorder=3, **where, **style)
            nearest = np.clip((x, y), box[:2], box[2:])
            if np.linalg.norm(nearest - (x, y)) > TIED:
                line = axes.transData.inverted().transform([(x, y), nearest])
                axes.plot(*line.T, color="C7", linewidth=0.5, zorder=0.5)
            taken = np.concatenate((taken, [box + (-MARGIN, -MARGIN, MARGIN, MARGIN)]))
            named.append(number)
            break
    return named


def _measure(axes: Axes, label: str, style: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a label, in pixels."""
    text = axes.text(0, 0, label, parse_math=False, **style)
    extent = text.get_window_extent(cast("FigureCanvasAgg", axes.figure.canvas).get_renderer())
    text.remove()
    return extent.width, extent.height


def _places(width: float, height: float) -> list[tuple[float, float]]:
    """Candidate offsets of a label's lower left corner: right, left or centred, nearest line first."""
    lifts = sorted((direction * step * STEP for step in range(REACH + 1) for direction in (1, -1)), key=abs)
    return [
        (dx, lift - height / 2)
        for lift in dict.fromkeys(lifts)
        for dx in (GAP, -GAP - width, -width / 2)
        if dx != -width / 2 or abs(lift) > height / 2 + MARGIN
    ]


def _overlaps(box: np.ndarray, others: np.ndarray) -> bool:
    return bool(((others[:, :2] < box[2:]) & (others[:, 2:] > box[:2])).all(axis=1).any())
