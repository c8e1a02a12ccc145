from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.layers.transformer import LEVELS, Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_drops_as_often_as_it_should_and_scales_the_rest(p, dtype):
    outputs = Dropout(p)(torch.ones(401, 333, dtype=dtype)).double()
    kept = outputs > 0
    # Five standard deviations of a mean of so many draws.
    assert abs(kept.double().mean() - (1 - p)) < 5 * (p * (1 - p) / outputs.numel()) ** 0.5 + 1 / LEVELS
    torch.testing.assert_close(outputs[kept], torch.full_like(outputs[kept], 1 / (1 - p)), rtol=0.005, atol=0)


def test_every_element_is_drawn_by_itself():
    torch.manual_seed(0)
    kept = (torch.stack([Dropout(0.5).noise(torch.empty(8)) for _ in range(4000)]) > 0).double()
    # The four that share a random number too; the deviation of a covariance of so many draws is 0.25 / 63.
    assert (kept.T.cov() - 0.25 * torch.eye(8)).abs().max() < 0.02


def test_gradient_passes_where_an_element_stays():
    x = torch.randn(5, 7, requires_grad=True)
    outputs = Dropout(0.4)(x)
    outputs.sum().backward()
    torch.testing.assert_close(x.grad, (outputs / x).detach())


def test_adding_is_one_operation_with_the_same_result():
    x, outputs, dropout = torch.randn(6, 5), torch.randn(6, 5), Dropout(0.3)
    torch.manual_seed(1)
    expected = x + dropout(outputs)
    torch.manual_seed(1)
    torch.testing.assert_close(dropout.add(x, outputs), expected)


@pytest.mark.parametrize(("p", "is_training"), [(0.3, False), (0.0, True)])
def test_drops_nothing_otherwise(p, is_training):
    x, dropout = torch.randn(6, 5), Dropout(p).train(is_training)
    assert torch.equal(dropout(x), x) and torch.equal(dropout.add(x, x), 2 * x)


def test_probability_one_drops_everything():
    assert not Dropout(1.0)(torch.randn(6, 5)).any()


def test_the_seed_decides():
    x, dropout = torch.randn(50, 5), Dropout(0.5)
    torch.manual_seed(3)
    first = dropout(x)
    torch.manual_seed(3)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(dropout(x), first)
