from __future__ import annotations

import math
import random

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.classification.scoring import classification


def test_labels_of_three_classes() -> None:
    assert classification([0, 1, 2, 2], [0, 1, 1, 2]) == {"accuracy": 0.75}


def test_two_classes_by_hand() -> None:
    result = classification([1, 1, 1, 0, 0], [1, 0, 1, 1, 0])
    assert result["accuracy"] == pytest.approx(3 / 5)
    assert result["precision"] == pytest.approx(2 / 3)
    assert result["recall"] == pytest.approx(2 / 3)
    assert result["f1"] == pytest.approx(2 / 3)
    nothing = classification([0, 0], [1, 1])
    assert (nothing["precision"], nothing["recall"], nothing["f1"]) == (0, 0, 0)


def test_booleans_and_small_integers_are_numbers() -> None:
    labels, references = [1, 1, 0, 1], [1, 0, 1, 1]
    expected = classification(labels, references)
    assert classification(list(map(bool, labels)), list(map(bool, references))) == expected
    assert classification(np.array(labels, bool), np.array(references, np.uint8)) == expected
    scored = classification(np.array(labels, bool), references, threshold=0.5)
    assert (scored["f1"], scored["max_f1"]) == pytest.approx((2 / 3, 6 / 7))


def test_scores_by_hand() -> None:
    """At 0.4 both right ones and one wrong are found: F1 = 2 · 2 / (3 + 2)."""
    result = classification([0.9, 0.5, 0.4, 0.1], [1, 0, 1, 0], threshold=0.5)
    assert result["accuracy"] == 0.5
    assert result["max_f1"] == pytest.approx(4 / 5)
    assert result["max_f1_threshold"] == 0.4


def test_max_f1_is_the_largest_of_all_thresholds() -> None:
    rng = random.Random(4)
    for _ in range(50):
        scores = [rng.randint(0, 6) / 6 for _ in range(12)]
        labels = [int(rng.random() < 0.5) for _ in scores]
        result = classification(scores, labels, threshold=0.5)
        f1 = {threshold: classification(scores, labels, threshold=threshold)["f1"] for threshold in scores}
        assert result["max_f1"] == pytest.approx(max(f1.values()))
        assert f1[result["max_f1_threshold"]] == pytest.approx(result["max_f1"])


def test_statistics() -> None:
    statistics = classification([0.9, 0.2, 0.7], [1, 1, 0], threshold=0.5).statistics
    assert statistics["accuracy"].rows.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert statistics["f1"].rows.tolist() == [[2, 2], [0, 1], [0, 1]]
    assert statistics["f1"].score == classification([0.9, 0.2, 0.7], [1, 1, 0], threshold=0.5)["f1"]
    assert classification([2, 1], [2, 0]).statistics.keys() == {"accuracy"}


@pytest.mark.parametrize(
    ("predictions", "references", "options", "message"),
    [
        ([], [], {}, "predictions is empty"),
        ([1], [1, 0], {}, "1 predictions, 2 references"),
        ([0.5], [1], {}, r"predictions\[0\] is 0.5, not a label; pass threshold for scores"),
        ([0.5], [2], {"threshold": 0.5}, r"references\[0\] must be 0 or 1"),
        ([1, math.inf], [1, 1], {}, r"predictions\[1\] is inf"),
        ([1, "1"], [1, 1], {}, r"predictions\[1\] must be a number, got str"),
    ],
)
def test_bad_input_is_named(predictions: list, references: list, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classification(predictions, references, **options)
