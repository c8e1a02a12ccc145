from __future__ import annotations

import copy

import pytest
import torch

from hf_paraphrase import CoupledLstmConfig, CoupledLstmModel
from hf_paraphrase.models.layers import products
from tests.models.pair_mixin import two_sequences

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without oneDNN")
libraries = pytest.mark.parametrize("is_wide", [False, pytest.param(True, marks=needs_onednn)], ids=["MKL", "oneDNN"])


@libraries
@pytest.mark.parametrize("is_strided", [False, True])
def test_both_libraries_multiply(is_wide, is_strided, monkeypatch):
    monkeypatch.setattr(products, "has_wide_vectors", lambda device, dtype: is_wide)
    torch.manual_seed(0)
    x, weight, total = torch.randn(7, 6), torch.randn(5, 6), torch.randn(7, 5)
    if is_strided:
        x, weight = x.t().contiguous().t(), torch.cat((weight, weight), dim=1)[:, 3:9]
    expected = x @ weight.t()
    torch.testing.assert_close(products.multiply(x, weight), expected)
    torch.testing.assert_close(products.add_product(total.clone(), x, weight), total + expected)


@libraries
@pytest.mark.parametrize("coupling", ["tight", "loose"])
def test_values_and_gradients_in_single_precision(is_wide, coupling, monkeypatch):
    torch.manual_seed(0)
    config = CoupledLstmConfig(
        vocab_size=10, embedding_size=3, hidden_size=4, num_blocks=2, coupling=coupling, match_features=True
    )
    single = CoupledLstmModel(config).eval()
    double = copy.deepcopy(single).double()
    expected = double(**two_sequences()).pooler_output
    expected.square().sum().backward()
    monkeypatch.setattr(products, "has_wide_vectors", lambda device, dtype: is_wide)
    got = single(**two_sequences()).pooler_output
    got.square().sum().backward()
    torch.testing.assert_close(got, expected.float())
    for one, other in zip(single.parameters(), double.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad.float(), rtol=1e-4, atol=1e-6)


@libraries
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_linear_layer_and_its_gradients(is_wide, has_bias, monkeypatch):
    monkeypatch.setattr(products, "has_wide_vectors", lambda device, dtype: is_wide)
    torch.manual_seed(0)
    layer, x, weights = torch.nn.Linear(6, 5, bias=has_bias), torch.randn(7, 6, requires_grad=True), torch.randn(7, 5)
    tensors = [x, *layer.parameters()]
    got, expected = products.linear(x, layer.weight, layer.bias), layer(x)
    torch.testing.assert_close(got, expected)
    both = (torch.autograd.grad((part * weights).sum(), tensors) for part in (got, expected))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other)
    layer.requires_grad_(False)
    torch.testing.assert_close(
        torch.autograd.grad(products.linear(x, layer.weight).sum(), x)[0], layer.weight.sum(0).expand(7, -1)
    )
