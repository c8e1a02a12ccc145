from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.hierarchical_lm.sentence_layers import scan_sarah


@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("sizes", [[3, 3, 2, 1], [1], []])
def test_the_gradient_is_the_derivative(sizes, num_heads):
    torch.manual_seed(0)
    words, value_size, key_size = sum(sizes), 6, 4
    shapes = [(words, value_size), (words, key_size), (value_size + key_size, value_size), (value_size + key_size,)]
    inputs = [torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes]
    for kept in (None, torch.randint(0, 2, (words, value_size + key_size)).double()):
        assert torch.autograd.gradcheck(lambda *tensors, k=kept: scan_sarah(*tensors, k, sizes, num_heads), inputs)
