from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.models.search.scoring_rules import likeliest_log_probs, likeliest_words


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


@pytest.mark.parametrize("forbidden", [None, [7, 290, 299]])
@pytest.mark.parametrize("shift", [0.0, 55.0, -55.0, 85.0, -85.0, 1e4, -1e4])
@pytest.mark.parametrize("count", [2, 100])
@pytest.mark.parametrize("beams", [1, 5])
def test_likeliest_log_probs_equal_those_of_log_softmax(
    beams: int, count: int, shift: float, forbidden: list[int] | None
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4 * beams, 300, generator=generator) * 4 + shift
    logits[2, 105:] = -torch.inf
    logits[3] += 30
    scores = torch.randn(4, beams, generator=generator) * 3
    expected = logits.log_softmax(-1)
    if forbidden is not None:
        forbidden = torch.tensor(forbidden)
        expected[:, forbidden] = -torch.inf
    expected = expected.view(4, -1)
    best = (expected + scores.repeat_interleave(300, dim=1)).topk(count)
    close = {"rtol": 1e-6, "atol": 1e-5 + 1e-7 * abs(shift)}
    slice_of_wider = torch.nn.functional.pad(logits, (0, 1))[:, :-1]
    for same_logits in (logits.clone(), slice_of_wider, logits.T.contiguous().T):
        found, places = likeliest_log_probs(same_logits, scores, count, forbidden)
        torch.testing.assert_close(found, expected.gather(1, best.indices), **close)
        assert torch.equal(places[found.isfinite()], best.indices[found.isfinite()])
