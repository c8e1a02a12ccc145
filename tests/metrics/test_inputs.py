from __future__ import annotations

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.inputs import check_lengths, check_numbers, check_texts


def test_single_references_become_lists_and_ragged_ones_stay() -> None:
    predictions, references = check_texts(("a", ""), ["x", ("y", "z")])
    assert predictions == ["a", ""]
    assert references == [["x"], ["y", "z"]]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([], [], "predictions is empty"),
        (["a"], ["x", "y"], "1 predictions but 2 references"),
        ("a", ["x"], "predictions must be a list, got str"),
        (["a"], None, "references must be a list, got NoneType"),
        (["a", None], ["x", "y"], r"predictions\[1\] must be a text, got NoneType"),
        (["a", "b"], ["x", []], r"references\[1\] is an empty list"),
        (["a", "b"], ["x", None], r"references\[1\] must be a text or a list of texts, got NoneType"),
        (["a", "b"], ["x", ["y", 3]], r"references\[1\]\[1\] must be a text, got int"),
    ],
)
def test_bad_input_is_named(predictions: object, references: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_texts(predictions, references)


def test_numbers_of_any_kind() -> None:
    assert check_numbers("losses", [1, 2.5, np.float32(0.5), np.int64(3), True]) == [1, 2.5, 0.5, 3, 1]


def test_lengths_are_listed() -> None:
    check_lengths(items=[1], raters=["a"])
    with pytest.raises(InputError, match="1 items, 2 raters; give one entry of each for every row"):
        check_lengths(items=[1], raters=["a", "b"])
