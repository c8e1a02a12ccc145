from __future__ import annotations

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.preference.agreement import cohen_kappa, fleiss_kappa
from hf_paraphrase.metrics.preference.scoring import preference

ITEMS, RATERS = list("11223344"), ["ann", "bob"] * 4
CHOSEN = ["win", "win", "tie", "loss", "loss", "loss", "win", "tie"]

# The usual worked example: 14 raters, 10 subjects, 5 categories, kappa 0.210.
FLEISS_TABLE = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_counts_shares_and_agreement() -> None:
    result = preference(ITEMS, RATERS, CHOSEN)
    assert (result["wins"], result["ties"], result["losses"]) == (3, 2, 3)
    assert (result["win_share"], result["tie_share"], result["loss_share"]) == (3 / 8, 2 / 8, 3 / 8)
    assert (result["judgements"], result["items"], result["raters"]) == (8, 4, 2)
    # Agreement 2/4; by chance (2·1 + 1·1 + 1·2) / 16.
    assert result["cohen_kappa"] == pytest.approx((1 / 2 - 5 / 16) / (1 - 5 / 16))
    # Agreement 2/4; by chance (3² + 2² + 3²) / 8².
    assert result["fleiss_kappa"] == pytest.approx((1 / 2 - 22 / 64) / (1 - 22 / 64))


def test_cohen_of_the_textbook() -> None:
    """Yes/yes 20, yes/no 5, no/yes 10, no/no 15: kappa 0.4."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)
    assert cohen_kappa(second, first) == pytest.approx(0.4)


def test_fleiss_of_the_textbook() -> None:
    assert fleiss_kappa(FLEISS_TABLE) == pytest.approx(0.210, abs=5e-4)


def test_limits_of_agreement() -> None:
    points = [1, 5, 3, 3, 2]
    assert cohen_kappa(points, points) == 1
    assert cohen_kappa([1, 2], [2, 1]) == -1
    assert cohen_kappa([3, 3], [3, 3]) is None
    assert fleiss_kappa([[2, 0], [0, 2]]) == 1
    assert fleiss_kappa([[2, 0], [2, 0]]) is None
    assert fleiss_kappa([[1, 0], [0, 1]]) is None


def test_raters_who_share_no_item() -> None:
    result = preference(["1", "2"], ["ann", "bob"], ["win", "win"])
    assert result["cohen_kappa"] is None
    assert result["fleiss_kappa"] is None


def test_three_raters_are_compared_in_pairs() -> None:
    items, raters = ["1", "2"] * 3, ["a", "a", "b", "b", "c", "c"]
    result = preference(items, raters, ["win", "loss", "win", "loss", "loss", "win"])
    assert result["cohen_kappa"] == pytest.approx((1 - 1 - 1) / 3)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["1"], ["ann"], ["better"]), r"choices\[0\] must be one of win, tie, loss, got 'better'"),
        ((["1", "1"], ["ann", "ann"], ["win", "tie"]), r"choices\[1\]: rater 'ann' judged item '1' before, at 0"),
        ((["1"], ["ann", "bob"], ["win"]), "1 items, 2 raters, 1 choices"),
        (([], [], []), "items is empty"),
        (([1], ["ann"], ["win"]), r"items\[0\] must be a text, got int"),
    ],
)
def test_bad_input_is_named(columns: tuple[list, list, list], message: str) -> None:
    with pytest.raises(InputError, match=message):
        preference(*columns)
