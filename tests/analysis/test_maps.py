from __future__ import annotations

import json

import numpy as np
import pytest

from hf_paraphrase.analysis.maps import draw_map, nearest, project, shorten, spread, write_map_page
from hf_paraphrase.common.errors import InputError


def test_near_vectors_lie_near_each_other():
    random = np.random.default_rng(0)
    vectors = np.concatenate([random.normal(center, 0.1, (20, 5)) for center in (0, 10)])
    points = project(vectors, perplexity=5)
    assert points.shape == (40, 2)
    centers = points.reshape(2, 20, 2).mean(axis=1)
    radius = np.linalg.norm(points.reshape(2, 20, 2) - centers[:, None], axis=-1).max()
    assert np.linalg.norm(centers[0] - centers[1]) > radius
    assert np.array_equal(project(vectors, perplexity=5), points)
    with pytest.raises(InputError, match="at least four points, not 3"):
        project(vectors[:3])


def test_the_nearest_come_first():
    vectors = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 0.5], [9.0, 9.0]])
    assert nearest(vectors, np.zeros((1, 2)), 3).tolist() == [2, 1, 0]


def test_names_are_spread_over_the_map():
    points = np.concatenate([np.full((500, 2), 0.1) + np.arange(500)[:, None] * 1e-5, [[1.0, 1.0], [0.0, 1.0]]])
    assert spread(points, 10) == [0, 500, 501]
    assert spread(points[:4], 10) == [0, 1, 2, 3]
    assert shorten("a\n b" + "c" * 60) == "a b" + "c" * 44 + "…"


def test_a_map_is_a_picture_and_a_page(tmp_path):
    points, labels = (
        np.random.default_rng(0).random((70, 2)),
        [f"word {i}" for i in range(68)] + ["<!--<script></script>", "$x$"],
    )
    draw_map(points, labels, tmp_path / "map.png", "near: $x$", center=69)
    assert (tmp_path / "map.png").stat().st_size > 5000
    write_map_page(points, labels, tmp_path / "map.html", "a <map>")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 1 and "<!--" not in page and "a &lt;map&gt;" in page and "http" not in page
    (line,) = (line for line in page.splitlines() if line.startswith("const points = "))
    assert [row[2] for row in json.loads(line.removeprefix("const points = "))] == labels
