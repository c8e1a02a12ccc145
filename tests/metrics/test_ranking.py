from __future__ import annotations

import random

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.ranking.scoring import ranking


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([3, 2, 1], [1, 0, 0], (1, 1, 1)),
        ([3, 2, 1], [0, 0, 1], (0, 1 / 3, 1 / 3)),
        ([4, 3, 2, 1], [0, 1, 0, 1], (0, 1 / 2, (1 / 2 + 2 / 4) / 2)),
        ([1, 1, 1], [1, 0, 0], (0, 1 / 3, 1 / 3)),  # ties: the wrong ones first
        ([0.5], [1], (1, 1, 1)),
        ([1, 9, 4], 2, (0, 1 / 2, 1 / 2)),  # the position of the right one
    ],
)
def test_by_hand(scores: list[float], labels: list[int] | int, expected: tuple[float, float, float]) -> None:
    result = ranking([scores], [labels])
    assert (result["precision_at_1"], result["mrr"], result["map"]) == pytest.approx(expected)


def test_queries_count_the_same_and_those_without_an_answer_not_at_all() -> None:
    result = ranking([[2, 1], [2, 1], [2, 1]], [[1, 0], [0, 1], [0, 0]])
    assert (result["precision_at_1"], result["mrr"]) == (0.5, 0.75)
    assert (result["queries"], result["skipped"]) == (2, 1)


def test_order_of_the_candidates_does_not_matter() -> None:
    rng = random.Random(1)
    for _ in range(50):
        query = [(rng.randint(0, 5), int(rng.random() < 0.4)) for _ in range(8)] + [(3, 1)]
        turned = rng.sample(query, len(query))
        results = [ranking([[score for score, _ in rows]], [[label for _, label in rows]]) for rows in (query, turned)]
        assert results[0] == results[1]
        assert results[0]["map"] <= 1


def test_unsigned_scores_have_an_order() -> None:
    assert ranking([np.array([3, 200, 0], np.uint8)], [1])["precision_at_1"] == 1


def test_statistics() -> None:
    statistics = ranking([[1, 2], [1, 2]], [np.int64(1), [0, 0]]).statistics["mrr"]
    assert statistics.rows.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([], [], "predictions is empty"),
        ([[1]], [[1], [0]], "1 predictions, 2 references"),
        ([[1, 2]], [[1]], r"references\[0\] has 1 labels, but predictions\[0\] 2 scores"),
        ([[1, 2]], [2], r"references\[0\] is 2, but predictions\[0\] has 2 candidates"),
        ([[1, 2]], [[1, 3]], r"references\[0\]\[1\] must be 0 or 1, got 3"),
        ([[1, None]], [0], r"predictions\[0\]\[1\] must be a number"),
        ([[1, 2]], [[0, 0]], "no query has a correct candidate"),
    ],
)
def test_bad_input_is_named(predictions: list, references: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ranking(predictions, references)
