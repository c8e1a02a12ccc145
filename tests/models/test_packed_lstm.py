from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from hf_paraphrase.models.layers.packed_lstm import run_packed_lstm

LENGTHS = torch.tensor([2, 5, 1, 5])


def outputs_and_gradients(run, lstm, with_state):
    """All that `run` computes from some inputs, and the gradients of a loss that looks at all of it."""
    torch.manual_seed(0)
    x, h, c = (torch.randn(*size, dtype=torch.float64) for size in ((4, 5, 3), (2, 4, 6), (2, 4, 6)))
    leaves = [tensor.requires_grad_() for tensor in (x, h, c)]
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    outputs, final = run(packed, (h, c) if with_state else None)
    results = (outputs.data, *final)
    loss = sum((torch.randn_like(result) * result).sum() for result in results)
    leaves = leaves if with_state else leaves[:1]
    return *results, *torch.autograd.grad(loss, [*leaves, *lstm.parameters()])


@pytest.mark.parametrize("with_state", [False, True])
def test_equals_torch_s_lstm_with_its_gradients(with_state):
    lstm = nn.LSTM(3, 6, num_layers=2, batch_first=True).double()
    ours = outputs_and_gradients(lambda *inputs: run_packed_lstm(lstm, *inputs), lstm, with_state)
    theirs = outputs_and_gradients(lstm, lstm, with_state)
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell_output", ["tanh", "identity"])
def test_gradients_are_those_of_small_differences(cell_output):
    lstm = nn.LSTM(2, 3).double()
    packed = pack_padded_sequence(torch.randn(4, 3, 2).double(), torch.tensor([4, 2, 1]))

    def run(data, h, c):
        outputs, state = run_packed_lstm(lstm, packed._replace(data=data), (h, c), cell_output)
        return outputs.data, *state

    inputs = [packed.data, *torch.randn(2, 1, 3, 3).double()]
    assert torch.autograd.gradcheck(run, [tensor.requires_grad_() for tensor in inputs])


def test_dropout_is_between_layers_and_only_in_training():
    lstm = nn.LSTM(3, 6, num_layers=2, dropout=0.999)
    packed = pack_padded_sequence(torch.randn(2, 4, 3), torch.tensor([4, 3]), batch_first=True)
    whole = run_packed_lstm(lstm.eval(), packed)[1][0]
    dropped = run_packed_lstm(lstm.train(), packed)[1][0]
    torch.testing.assert_close(dropped[0], whole[0])
    assert not torch.allclose(dropped[1], whole[1])


def test_autocast_lowers_products_and_keeps_the_state():
    lstm = nn.LSTM(3, 6)
    packed = pack_padded_sequence(torch.randn(4, 2, 3), torch.tensor([4, 3]))
    outputs, (h, c) = run_packed_lstm(lstm, packed)
    with torch.autocast("cpu", torch.bfloat16):
        lowered, state = run_packed_lstm(lstm, packed)
    assert {lowered.data.dtype, state[0].dtype, state[1].dtype} == {torch.float32}
    torch.testing.assert_close(lowered.data, outputs.data, rtol=0.05, atol=0.02)
    lowered.data.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in lstm.parameters())
