from __future__ import annotations

import pytest
import torch
from torch import nn

from hf_paraphrase.models.layers import language_model_head
from hf_paraphrase.models.layers.language_model_head import score_words


@pytest.fixture
def projection(monkeypatch: pytest.MonkeyPatch) -> nn.Linear:
    """One whose 23 words are scored 3 at a time; the last slice is not full."""
    monkeypatch.setattr(language_model_head, "SLICE", 15)
    monkeypatch.setattr(language_model_head, "LARGE", 1)
    torch.manual_seed(0)
    return nn.Linear(5, 23)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4, 5), (2, 3, 5), (1, 5), (5,), (0, 5)])
def test_slices_make_the_whole_product(projection: nn.Linear, shape: tuple[int, ...], bias: bool) -> None:
    hidden = torch.randn(shape)
    if not bias:
        projection.bias = None
    with torch.inference_mode():
        scores = score_words(projection, hidden)
    torch.testing.assert_close(scores, nn.functional.linear(hidden, projection.weight, projection.bias))
    assert scores.is_contiguous()


def test_only_decoding_is_sliced(projection: nn.Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    sliced, mm = [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda *args, **kwargs: sliced.append(args) or mm(*args, **kwargs))
    score_words(projection, torch.randn(4, 5)).sum().backward()
    assert projection.weight.grad is not None
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert score_words(projection, torch.randn(4, 5)).dtype == torch.bfloat16
    assert not sliced
    with torch.no_grad():
        score_words(projection, torch.randn(4, 5))
    assert len(sliced) == 8
