from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.models.search.likeliest_words import likeliest_words, log_normalizer


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 9),
    words=st.integers(1, 5000),
    count=st.integers(1, 12),
    impossible=st.floats(0.0, 1.0),
)
def test_likeliest_words_equal_topk(seed: int, rows: int, words: int, count: int, impossible: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.stack([torch.randperm(words, generator=generator) for _ in range(rows)]).float()
    scores[torch.rand(rows, words, generator=generator) < impossible] = -torch.inf
    count = min(count, words)
    found, places = likeliest_words(scores, count)
    expected = scores.topk(count)
    assert torch.equal(found, expected.values)
    assert torch.equal(scores.gather(1, places), found)
    assert torch.equal(places[found.isfinite()], expected.indices[found.isfinite()])
    assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize("shift", [0.0, 55.0, -55.0, 85.0, -85.0, 1e4, -1e4])
def test_log_normalizer_equals_that_of_log_softmax(shift: float) -> None:
    logits = torch.randn(19, 300, generator=torch.Generator().manual_seed(0)) * 4 + shift
    logits[3, 5:] = -torch.inf
    logits[4] += 30
    expected = logits - logits.log_softmax(-1)
    found = log_normalizer(logits)
    assert found.shape == (19, 1)
    torch.testing.assert_close(found, expected[:, :1], rtol=1e-6, atol=1e-5)
