from __future__ import annotations

import math

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.nits_per_character.scoring import nits_per_character
from hf_paraphrase.metrics.perplexity.scoring import perplexity


def test_nits_are_weighted_by_length() -> None:
    result = nits_per_character([6, 4], [2, 6])
    assert result == {
        "nits_per_character": 10 / 8,
        "bits_per_character": pytest.approx(10 / 8 / math.log(2)),
        "loss": 10,
        "characters": 8,
    }
    assert nits_per_character([10], [8])["nits_per_character"] == result["nits_per_character"]
    assert not nits_per_character([1], [1]).statistics["nits_per_character"].higher_is_better


def test_a_uniform_model() -> None:
    """306 symbols, all equally likely."""
    assert nits_per_character([5 * math.log(306)], [5])["nits_per_character"] == pytest.approx(math.log(306))
    assert perplexity([3 * math.log(306), 0], [3, 0])["perplexity"] == pytest.approx(306)


def test_perplexity_in_any_batches() -> None:
    losses, tokens = [3.0, 5.0, 2.5], [4, 2, 7]
    whole = perplexity([sum(losses)], [sum(tokens)])
    assert perplexity(losses, tokens) == whole
    assert whole["perplexity"] == pytest.approx(math.exp(10.5 / 13))
    assert perplexity(losses, tokens).statistics["perplexity"].score == whole["perplexity"]
    assert perplexity([1e6], [1])["perplexity"] == math.inf


@pytest.mark.parametrize(
    ("losses", "counts", "message"),
    [
        ([1.0], [1, 2], "1 losses, 2 characters"),
        ([], [], "losses is empty"),
        ([1.0, math.nan], [1, 1], r"losses\[1\] is nan"),
        ([1.0], [-1], r"characters\[0\] is -1"),
        ([1.0], ["1"], r"characters\[0\] must be a number, got str"),
        ([1.0], [None], r"characters\[0\] must be a number, got NoneType"),
        ([1.0], [0], "characters are all 0"),
    ],
)
def test_bad_input_is_named(losses: list, counts: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nits_per_character(losses, counts)
