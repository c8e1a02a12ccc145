from __future__ import annotations

import re

import pytest

from hf_paraphrase.analysis.edits import COLD, MOST_OPAQUE, WARM, format_heat_map
from tests.contrast import BLACK, WHITE, blend, contrast


def test_a_row_a_word_and_a_cell_a_number() -> None:
    table = format_heat_map(["a", "<b>"], ["x", "y", "&"], [[0.0, 0.5, 1.0], [-1.0, -0.25, 0.004]])
    assert re.findall(r"<th[^>]*>(.*?)</th>", table) == ["", "x", "y", "&amp;", "a", "&lt;b&gt;"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", table) == ["0", "50", "100", "-100", "-25", "0"]
    colours = re.findall(r"rgba\((.*?)\)", table)
    assert [colour.startswith(WARM) for colour in colours] == [True, True, True, False, False, True]
    assert [float(colour.split(", ")[-1]) for colour in colours] == [0.0, 0.35, 0.7, 0.7, 0.17, 0.0]


@pytest.mark.parametrize("colour", [WARM, COLD])
@pytest.mark.parametrize(("ink", "page"), [(BLACK, WHITE), (WHITE, (15, 23, 42))])
def test_numbers_can_be_read_on_the_strongest_colour(colour: str, ink: tuple, page: tuple) -> None:
    cell = blend(tuple(map(int, colour.split(", "))), page, MOST_OPAQUE)
    assert contrast(ink, cell) >= 4.5
