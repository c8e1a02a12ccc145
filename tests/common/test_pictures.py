"""What pictures look like, by the boxes that their texts take."""

from __future__ import annotations

import ast
from collections import Counter
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from hf_paraphrase.analysis import matches
from hf_paraphrase.analysis.maps import draw_map, shorten
from hf_paraphrase.common.pictures import STYLE, label_points, new_figure, save_figure, tick_plainly, wrap
from hf_paraphrase.datasets import statistics
from hf_paraphrase.evaluation import documents
from hf_paraphrase.evaluation.results import Data, Entry, Group, Results, Score
from hf_paraphrase.training import reporting
from tests.contrast import WHITE, contrast

pytest.importorskip("matplotlib")
import matplotlib  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.image import imread  # noqa: E402
from matplotlib.text import Text  # noqa: E402

ROOT = Path(__file__).parents[2]
LONG = "runs/comparison/sarah-lm-gutenberg-small-learning_rate=0.001-weight_decay=0.0005-seed=1"
RUNS = {
    f"{LONG}{number}": {
        "evaluations": [
            {
                "epoch": epoch,
                "train_perplexity": 300 - 50 * epoch,
                "eval_perplexity": 250 - 40 * epoch,
                "eval_loss": 1.8 - epoch / 10,
                "eval_general_loss": 1.7 + epoch / 10,
            }
            for epoch in (1, 2, 3)
        ]
    }
    for number in range(12)
}
RATES = tuple(Group("words", length, 9, (Score("exact", rate),)) for length, rate in ((20, 0.5), (30, 0.2)))
RECONSTRUCTED = Results("documents", Data(), (Entry("tiny", "model", (), groups=RATES),))


def box(text: Text) -> tuple[float, float, float, float]:
    return text.get_window_extent(text.figure.canvas.get_renderer()).extents


def assert_apart(texts: list[Text]) -> None:
    for one, other in combinations(texts, 2):
        (left, bottom, right, top), (start, low, end, high) = box(one), box(other)
        assert right <= start or end <= left or top <= low or high <= bottom, (one.get_text(), other.get_text())


def assert_inside(texts: list[Text], extents: np.ndarray) -> None:
    for text in texts:
        left, bottom, right, top = box(text)
        assert left >= extents[0] and bottom >= extents[1] and right <= extents[2] and top <= extents[3], text


def ticks_of(axis) -> list[Text]:
    """The labels of the ticks within the picture; others are made, but not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def texts_of(figure) -> list[Text]:
    """Every text that is drawn, once the picture is laid out."""
    figure.canvas.draw()
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        texts += [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
        texts += [*ticks_of(axes.xaxis), *ticks_of(axes.yaxis)]
    return [text for text in texts if text.get_visible() and text.get_text()]


def clusters(count: int) -> np.ndarray:
    """Points as t-SNE lays them out: crowded."""
    random = np.random.default_rng(0)
    return random.normal(0, 40, (6, 2))[random.integers(6, size=count)] + random.standard_t(3, (count, 2)) * 4


@pytest.mark.parametrize("center", [None, 7])
@pytest.mark.parametrize(
    ("points", "labels", "fewest"),
    [
        (clusters(51), [f"what is number {n} of all the questions that people ask ?" for n in range(51)], 40),
        (clusters(3000), [f"what does $word{n}$ mean" for n in range(3000)], 20),
        (np.zeros((30, 2)), [f"word {n}" for n in range(30)], 10),
        (np.array([[0.0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [3, 1], [4, 2], [5, 5]]), list("abcdefgh"), 8),
    ],
    ids=["sentences", "many", "one place", "few"],
)
def test_names_on_a_map_lie_apart(points, labels, fewest, center, tmp_path):
    figure = draw_map(points, labels, tmp_path / "map.png", "near: " + "a very long sentence " * 20, center)
    (axes,) = figure.axes
    named = list(axes.texts)
    assert fewest <= len(named) <= 61 and len({text.get_text() for text in named}) == len(named)
    assert_apart(named)
    assert_inside(named, axes.get_window_extent().extents)
    if center is not None:
        assert named[0].get_text() == shorten(labels[center])
    others = [text for text in texts_of(figure) if text not in named]
    assert_inside(others, figure.bbox.extents)
    assert_apart(others)
    said = [text.get_text() for text in others if "are named" in text.get_text()]
    assert said == ([f"{len(named)} of {len(points):,} points are named"] if len(named) < len(points) else [])


def test_a_name_hides_no_point_and_is_tied_to_its_own_where_it_had_to_move():
    figure = new_figure(4, 2, layout=None)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
    points = np.array([[0.5, 0.5]] * 5 + [[0.1, 0.1]])
    names = [*"abcde", "a name as long as the whole picture is, which has no room in it anywhere"]
    assert label_points(axes, points, names, obstacles=points) == [0, 1, 2, 3, 4]
    assert_apart(axes.texts)
    for text in axes.texts:
        left, bottom, right, top = box(text)
        x, y = axes.transData.transform((0.5, 0.5))
        assert not (left < x < right and bottom < y < top)
    assert 0 < len(axes.lines) < 5
    assert all(np.allclose(line.get_xydata()[0], (0.5, 0.5)) for line in axes.lines)


@pytest.mark.parametrize("interval", [(1.1, 1.3), (2.1, 2.8), (8, 30), (40, 400), (3, 20_000)])
def test_ticks_of_a_logarithmic_axis_are_plain_numbers(interval):
    figure = new_figure()
    axes = figure.subplots()
    axes.plot([0, 1], interval)
    axes.set_yscale("log")
    tick_plainly(axes.yaxis)
    texts_of(figure)
    ticks = ticks_of(axes.yaxis)
    assert len(ticks) >= 3
    assert_apart(ticks)
    assert [float(tick.get_text().replace(",", "")) for tick in ticks] == pytest.approx(
        [tick.get_position()[1] for tick in ticks]
    )
    assert not any(tick.label1.get_text() for tick in axes.yaxis.get_minor_ticks())


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved."""
    figures = []

    def save(figure, path):
        figures.append(figure)
        save_figure(figure, path)

    for module in (reporting, documents, matches, statistics):
        monkeypatch.setattr(module, "save_figure", save)
    return figures


@pytest.mark.parametrize(
    ("draw", "curve"),
    [
        (reporting.plot_learning_curves, None),
        (partial(reporting.plot_learning_curves, fine_tuning=True), None),
        (documents.plot_reconstruction, RECONSTRUCTED),
        (statistics.plot_lengths, Counter(range(1, 30))),
    ],
)
def test_a_legend_hides_no_curve(draw, curve, drawn, tmp_path):
    draw({name: curve or run for name, run in RUNS.items()}, tmp_path / "picture.png")
    (figure,) = drawn
    texts = texts_of(figure)
    assert_inside(texts, figure.bbox.extents)
    (axes,), (legend,) = figure.axes, figure.legends
    assert len(legend.get_texts()) == len(RUNS)
    assert legend.get_window_extent().y1 <= axes.get_window_extent().y0
    assert axes.get_window_extent().height > 250
    assert_apart(texts)


@pytest.mark.parametrize(("x", "y"), [(2, 2), (13, 17), (40, 50)])
def test_words_beside_a_heat_map_lie_apart(x, y, drawn, tmp_path):
    words = ["internationalization", "$x_1$", "a", "</s>"] * 20
    grid = matches.PairGrid(words[:x], words[:y], torch.randn(x, y, 2))
    matches.plot_unit(grid, tmp_path / "picture.png", 1)
    (figure,) = drawn
    assert_inside(texts_of(figure), figure.bbox.extents)
    axes = figure.axes[0]
    columns, rows = ticks_of(axes.xaxis), ticks_of(axes.yaxis)
    assert [text.get_text() for text in columns] == words[:y] and not any(text.get_parse_math() for text in columns)
    assert_apart(rows)
    # Turned texts: so far from each other as a line is high.
    step = np.diff([axes.transData.transform((place, 0))[0] for place in range(2)])[0]
    assert step * np.sin(np.radians(60)) > columns[0].get_fontsize() * figure.dpi / 72


# Dark pages: GitHub's, and a site's.
PAGES = {"white": WHITE, "dark": (13, 17, 23), "slate": (15, 23, 42)}
DRAWN = {
    "curves": lambda path: reporting.plot_learning_curves(RUNS, path),
    "fine-tuning": lambda path: reporting.plot_learning_curves(RUNS, path, fine_tuning=True),
    "reconstruction": lambda path: documents.plot_reconstruction({"tiny": RECONSTRUCTED}, path),
    "lengths": lambda path: statistics.plot_lengths({"source": Counter(range(1, 30))}, path),
    "map": lambda path: draw_map(clusters(200), [f"word {n}" for n in range(200)], path, "200 words", 7),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_read_on_light_and_dark_pages(name, tmp_path):
    """Nothing lies behind it, and whatever is drawn can be told from both pages."""
    DRAWN[name](tmp_path / "picture.png")
    pixels = imread(tmp_path / "picture.png").reshape(-1, 4)
    assert pixels[0, 3] == 0 and np.mean(pixels[:, 3] == 0) > 0.5
    colours, counts = np.unique((255 * pixels[pixels[:, 3] > 0.6, :3]).round(), axis=0, return_counts=True)
    assert counts.sum() > 500
    for page in PAGES.values():
        readable = [contrast(tuple(colour), page) >= 3 for colour in colours]
        assert counts[readable].sum() > 0.99 * counts.sum()


@pytest.mark.parametrize("page", PAGES)
def test_the_style_has_colours_for_light_and_dark_pages(page):
    style = matplotlib.rc_params_from_file(STYLE, use_default_template=False)
    curve_colours = {entry["color"] for entry in style["axes.prop_cycle"]}
    assert len(curve_colours) == 10
    texts = {style[name] for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")}
    for colours, least in ((curve_colours, 3), (texts, 4)):
        shown = [tuple(255 * part for part in to_rgb(colour)) for colour in colours]
        assert min(contrast(colour, PAGES[page]) for colour in shown) >= least


def test_a_callers_own_style_stays(tmp_path):
    before = dict(matplotlib.rcParams)
    DRAWN["curves"](tmp_path / "picture.png")
    assert dict(matplotlib.rcParams) == before


def test_whoever_makes_a_figure_draws_in_style():
    for path in (ROOT / "hf_paraphrase").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "new_figure(" in "".join(map(ast.unparse, node.body)):
                assert "in_style" in map(ast.unparse, node.decorator_list), f"{path.name}: {node.name}"


def test_a_text_is_wrapped():
    assert wrap("one two three four five", 9) == "one two\nthree …"
    assert wrap("one", 9) == "one"


def test_pictures_are_made_and_saved_in_one_place():
    ways = ("FigureCanvas", "savefig", "print_png", "pyplot", "imsave")
    modules = [path for folder in ("hf_paraphrase", "scripts") for path in (ROOT / folder).rglob("*.py")]
    found = {path.name for path in modules if any(way in path.read_text(encoding="utf-8") for way in ways)}
    assert found == {"pictures.py"}
