from __future__ import annotations

import itertools

import pytest
import torch

from hf_paraphrase.models.configuration_coupled_lstm import CoupledLstmConfig
from hf_paraphrase.models.modeling_coupled_lstm import CoupledLstmModel
from tests.models import naive_coupled_lstm as naive
from tests.models.modeling_mixin import pad

# Pairs of 4 and 2, 1 and 5, 3 and 3, 2 and 1, 1 and 1 words.
FIRST = [[4, 5, 6, 7], [9], [5, 5, 8], [7, 2], [2]]
SECOND = [[6, 8], [4, 6, 9, 5, 2], [5, 8, 7], [3], [4]]


def small_config(**overrides) -> CoupledLstmConfig:
    return CoupledLstmConfig(**{"vocab_size": 10, "embedding_size": 3, "hidden_size": 4, "num_blocks": 2} | overrides)


def small_model(model_class=CoupledLstmModel, **overrides):
    torch.manual_seed(0)
    model = model_class(small_config(**overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def batch(side: str = "right") -> dict[str, torch.Tensor]:
    ones = [[[1] * len(row) for row in rows] for rows in (FIRST, SECOND)]
    return {
        "input_ids": pad(FIRST, side, 0),
        "attention_mask": pad(ones[0], side, 0),
        "pair_input_ids": pad(SECOND, side, 0),
        "pair_attention_mask": pad(ones[1], side, 0),
    }


def gradients(model, loss) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


OPTIONS = list(itertools.product(("tight", "loose"), (1, 4), (True, False), (1, 3)))


@pytest.mark.parametrize(("coupling", "num_directions", "share_directions", "num_blocks"), OPTIONS)
def test_values_and_gradients_equal_the_double_loop(coupling, num_directions, share_directions, num_blocks):
    model = small_model(
        coupling=coupling,
        num_directions=num_directions,
        share_directions=share_directions,
        num_blocks=num_blocks,
        pooling_size=(2, 3),
    )
    outputs = model(**batch(), output_hidden_states=True)
    expected = [naive.coupled_lstm(model, x, y) for x, y in zip(FIRST, SECOND, strict=True)]
    pooled = [naive.pool(grids[-1], 2, 3) for grids in expected]
    for row, grids in enumerate(expected):
        for got, grid in zip(outputs.hidden_states, grids, strict=True):
            n, m, _ = grid.shape
            torch.testing.assert_close(got[row, :n, :m], grid, rtol=0, atol=1e-10)
            assert not got[row, n:].any() and not got[row, :, m:].any()
        torch.testing.assert_close(outputs.pooler_output[row], pooled[row], rtol=0, atol=1e-10)
    weights = torch.randn(outputs.pooler_output.shape, dtype=torch.float64)
    fast = gradients(model, (outputs.pooler_output * weights).sum() + outputs.hidden_states[0].square().sum())
    slow_loss = (torch.stack(pooled) * weights).sum() + sum(grids[0].square().sum() for grids in expected)
    for name, gradient in gradients(model, slow_loss).items():
        torch.testing.assert_close(fast[name], gradient, rtol=0, atol=1e-10)
