from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from hf_paraphrase.models.layers import lstm_kernels, products
from hf_paraphrase.models.layers.lstm_kernels import IdentityOutputLstm, choose_kernel, run_loop, run_lstm
from hf_paraphrase.models.layers.products import PrepackedWeights

LENGTHS = torch.tensor([5, 5, 2, 1])
KERNELS = ("run_loop", "run_fused")


def outputs_and_gradients(run, lstm):
    """All that `run` computes from some inputs, and the gradients of a loss that looks at all of it."""
    torch.manual_seed(0)
    x, h, c = (torch.randn(*size, dtype=torch.float64) for size in ((4, 5, 3), (2, 4, 6), (2, 4, 6)))
    leaves = [tensor.requires_grad_() for tensor in (x, h, c)]
    outputs, final = run(pack_padded_sequence(x, LENGTHS, batch_first=True), (h, c))
    results = (outputs.data, *final)
    loss = sum((torch.randn_like(result) * result).sum() for result in results)
    return *results, *torch.autograd.grad(loss, [*leaves, *lstm.parameters()])


def run_ours(lstm: nn.LSTM, packed: PackedSequence, state, every_layer: bool = False):
    outputs, final = run_lstm(lstm, packed.data, state, packed.batch_sizes.tolist(), nn.Identity(), every_layer)
    assert len(outputs) == lstm.num_layers or not every_layer
    return packed._replace(data=outputs[-1]), final


@pytest.mark.parametrize("every_layer", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kernel_equals_torch_s_lstm_with_its_gradients(monkeypatch, kernel, every_layer):
    monkeypatch.setattr(lstm_kernels, "choose_kernel", lambda *_: getattr(lstm_kernels, kernel))
    lstm = nn.LSTM(3, 6, num_layers=2, batch_first=True).double()
    ours = outputs_and_gradients(lambda *inputs: run_ours(lstm, *inputs, every_layer), lstm)
    for our, their in zip(ours, outputs_and_gradients(lstm, lstm), strict=True):
        torch.testing.assert_close(our, their, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps_worth_packing", [1, 100])
def test_the_loop_equals_torch_s_lstm_in_single_precision(monkeypatch, steps_worth_packing):
    monkeypatch.setattr(products, "STEPS_WORTH_PACKING", steps_worth_packing)
    lstm, x, state = nn.LSTM(3, 6), torch.randn(7, 3), torch.randn(2, 1, 3, 6)
    sizes = [3, 2, 1, 1]
    outputs, (h, c) = run_loop(lstm, range(1), x, sizes, (state[0], state[1]))
    expected, final = lstm(PackedSequence(x, torch.tensor(sizes)), (state[0], state[1]))
    torch.testing.assert_close((outputs, h, c), (expected.data, *final))


@pytest.mark.parametrize("is_wide", [False, True])
def test_the_choice_among_kernels(is_wide, monkeypatch):
    monkeypatch.setattr(lstm_kernels, "has_wide_vectors", lambda device, dtype: is_wide)
    learning = lstm_kernels.run_loop if is_wide else lstm_kernels.run_cell
    lstm, x = nn.LSTM(3, 6), torch.randn(4, 3)
    assert choose_kernel(lstm, x, [2, 1, 1], None) is lstm_kernels.run_loop
    assert choose_kernel(lstm, x, [2, 2], None) is lstm_kernels.run_fused
    assert choose_kernel(lstm, x, [4], None) is choose_kernel(lstm, x, [4], PrepackedWeights()) is learning
    assert choose_kernel(IdentityOutputLstm(3, 6), x, [4], None) is lstm_kernels.run_loop
    assert choose_kernel(nn.LSTM(3, 6, bidirectional=True), x, [4], None) is lstm_kernels.run_fused
    with torch.no_grad():
        uneven = lstm_kernels.run_loop if is_wide else lstm_kernels.run_fused
        assert choose_kernel(lstm, x, [2, 1, 1], None) is uneven
        assert choose_kernel(lstm, x, [4], None) is lstm_kernels.run_cell


@pytest.mark.parametrize("lstm_class", [nn.LSTM, IdentityOutputLstm])
def test_gradients_are_those_of_small_differences(lstm_class):
    lstm, sizes = lstm_class(2, 3).double(), [3, 2, 1, 1]

    def run(x, h, c):
        outputs, state = run_loop(lstm, range(1), x, sizes, (h, c))
        return outputs, *state

    inputs = [torch.randn(7, 2).double(), *torch.randn(2, 1, 3, 3).double()]
    assert torch.autograd.gradcheck(run, [tensor.requires_grad_() for tensor in inputs])


@pytest.mark.parametrize("sizes", [[2, 2, 2, 1], [2, 2]])
def test_dropout_follows_every_layer_in_training_alone(sizes):
    lstm, x, state = nn.LSTM(3, 6, num_layers=2, dropout=0.999), torch.randn(sum(sizes), 3), torch.zeros(2, 2, 2, 6)
    dropout = nn.Dropout(lstm.dropout)
    whole, (whole_h, _) = run_lstm(lstm.eval(), x, (state[0], state[1]), sizes, dropout.eval())
    dropped, (h, _) = run_lstm(lstm.train(), x, (state[0], state[1]), sizes, dropout.train())
    torch.testing.assert_close(h[0], whole_h[0])
    assert not torch.allclose(h[1], whole_h[1])
    assert (dropped[-1] == 0).float().mean() > 0.9 and not (whole[-1] == 0).any()


def test_autocast_lowers_products_and_keeps_the_state():
    lstm, x, state = nn.LSTM(3, 6), torch.randn(7, 3), torch.zeros(2, 1, 2, 6)
    run = lambda: run_loop(lstm, range(1), x, [2, 2, 2, 1], (state[0], state[1]))  # noqa: E731
    outputs, _ = run()
    with torch.autocast("cpu", torch.bfloat16):
        lowered, (h, c) = run()
    assert {lowered.dtype, h.dtype, c.dtype} == {torch.float32}
    torch.testing.assert_close(lowered, outputs, rtol=0.05, atol=0.02)
    lowered.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in lstm.parameters())
