from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.layers.recurrent import AdditiveAttention, RecurrentCache, StackedLstm, fit_width

from . import naive

STACKS = {
    "plain": dict(input_size=5, hidden_size=5, num_layers=3),
    "residual": dict(input_size=5, hidden_size=5, num_layers=4, residual_interval=2),
    "residual every layer": dict(input_size=5, hidden_size=5, num_layers=2, residual_interval=1),
    "layer left over": dict(input_size=5, hidden_size=5, num_layers=3, residual_interval=2),
    "input clipped": dict(input_size=7, hidden_size=4, num_layers=4, residual_interval=2),
    "input padded": dict(input_size=3, hidden_size=4, num_layers=2, residual_interval=2),
    "bidirectional": dict(input_size=5, hidden_size=4, num_layers=2, bidirectional=True),
    "bidirectional residual": dict(input_size=5, hidden_size=4, num_layers=4, residual_interval=2, bidirectional=True),
}
# Padding on the right, on the left, between, nowhere, and a row with nothing real.
MASK = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])


def make_stack(name: str) -> StackedLstm:
    return StackedLstm(**STACKS[name]).double()


def random_state(stack: StackedLstm, batch_size: int):
    rows = sum(group.num_layers * (2 if group.bidirectional else 1) for group in stack.groups)
    size = stack.groups[0].hidden_size
    return tuple(torch.randn(rows, batch_size, size, dtype=torch.float64) for _ in range(2))


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("with_state", [False, True])
def test_equals_the_equations_at_real_positions(name, with_state):
    stack = make_stack(name)
    inputs = torch.randn(*MASK.shape, STACKS[name]["input_size"], dtype=torch.float64)
    state = random_state(stack, len(MASK)) if with_state else None
    outputs, final, _ = stack(inputs, MASK, state)
    for row in range(len(MASK) - 1):
        real = MASK[row].nonzero().flatten().tolist()
        row_state = None if state is None else tuple(part[:, row] for part in state)
        expected, (h, c) = naive.stacked_lstm(stack, [inputs[row, t] for t in real], row_state)
        torch.testing.assert_close(outputs[row, real], torch.stack(expected), rtol=0, atol=1e-12)
        torch.testing.assert_close(final[0][:, row], torch.stack(h), rtol=0, atol=1e-12)
        torch.testing.assert_close(final[1][:, row], torch.stack(c), rtol=0, atol=1e-12)
    assert not outputs[MASK == 0].any()


@pytest.mark.parametrize("name", [name for name in STACKS if "bidirectional" not in name])
def test_step_by_step_equals_whole(name):
    stack = make_stack(name)
    inputs = torch.randn(*MASK.shape, STACKS[name]["input_size"], dtype=torch.float64)
    state = random_state(stack, len(MASK))
    outputs, final, _ = stack(inputs, None, state)
    for t in range(inputs.shape[1]):
        step, state, _ = stack(inputs[:, t : t + 1], None, state)
        torch.testing.assert_close(step[:, 0], outputs[:, t], rtol=0, atol=1e-12)
    torch.testing.assert_close(state, final, rtol=0, atol=1e-12)


def test_a_single_step_drops_outputs_between_layers_too():
    stack = StackedLstm(4, 4, 2, dropout=0.999999).train()
    state = random_state(stack, 3)
    state = tuple(part.float() for part in state)
    _, (h, _), _ = stack(torch.randn(3, 1, 4), None, state)
    expected = torch.lstm_cell(torch.zeros(3, 4), (state[0][1], state[1][1]), *stack.groups[0].all_weights[1])[0]
    torch.testing.assert_close(h[1], expected)


@pytest.mark.parametrize("name", ["plain", "residual", "bidirectional residual"])
def test_a_row_without_real_positions_keeps_its_state(name):
    stack = make_stack(name)
    state = random_state(stack, len(MASK))
    inputs = torch.randn(*MASK.shape, STACKS[name]["input_size"], dtype=torch.float64)
    for start, expected in ((state, state), (None, tuple(map(torch.zeros_like, state)))):
        _, final, _ = stack(inputs, MASK, start)
        assert torch.equal(final[0][:, -1], expected[0][:, -1])
        assert torch.equal(final[1][:, -1], expected[1][:, -1])


@pytest.mark.parametrize("name", STACKS)
def test_every_layer_on_request_and_nothing_else_changes(name):
    stack = make_stack(name)
    inputs = torch.randn(*MASK.shape, STACKS[name]["input_size"], dtype=torch.float64)
    outputs, final, none = stack(inputs, MASK)
    same, same_final, layers = stack(inputs, MASK, output_hidden_states=True)
    assert none is None and len(layers) == STACKS[name]["num_layers"]
    torch.testing.assert_close(layers[-1], outputs)
    torch.testing.assert_close(same, outputs)
    torch.testing.assert_close(same_final, final)


def test_dropout_follows_every_layer_and_spares_the_residual():
    stack = StackedLstm(4, 4, 2, residual_interval=1, dropout=0.999999).train()
    inputs = torch.randn(2, 3, 4)
    outputs, _, _ = stack(inputs)
    torch.testing.assert_close(outputs, inputs)


def test_gradients_flow_past_padding():
    stack = make_stack("residual")
    inputs = torch.randn(*MASK.shape, 5, dtype=torch.float64, requires_grad=True)
    outputs, final, _ = stack(inputs, MASK)
    (outputs.sum() + final[1].sum()).backward()
    assert inputs.grad[MASK == 1].abs().sum(dim=-1).min() > 0
    assert not inputs.grad[MASK == 0].any()


def test_fit_width():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    assert fit_width(x, 2).tolist() == [[1, 2]]
    assert fit_width(x, 5).tolist() == [[1, 2, 3, 0, 0]]
    assert fit_width(x, 3) is x


def test_additive_attention_equals_its_equation_and_leaves_padding_out():
    attention = AdditiveAttention(3, 4, 6).double()
    queries, memory = torch.randn(4, 2, 3, dtype=torch.float64), torch.randn(4, 5, 4, dtype=torch.float64)
    contexts, weights = attention(attention.query(queries), attention.project_keys(memory), memory, MASK[:4])
    for row in range(4):
        real = MASK[row].bool()
        for t in range(2):
            context, expected = naive.additive_attention(attention, queries[row, t], memory[row, real])
            torch.testing.assert_close(contexts[row, t], context)
            torch.testing.assert_close(weights[row, t, real], expected)
            assert not weights[row, t, ~real].any()


def make_cache(batch_size: int = 3) -> RecurrentCache:
    state = tuple(torch.arange(batch_size).view(1, -1, 1) + torch.zeros(2, batch_size, 4) for _ in range(2))
    rows = torch.arange(batch_size)
    return RecurrentCache(state, rows.view(-1, 1, 1).expand(-1, 5, 6), seen_tokens=7)


def rows_of(cache: RecurrentCache) -> list[list[int]]:
    h, c = cache.state
    parts = (h[0, :, 0], h[1, :, 3], c[0, :, 0], cache.attention_keys[:, 4, 5])
    return [part.long().tolist() for part in parts]


def test_cache_follows_its_hypotheses():
    cache = make_cache()
    cache.reorder_cache(torch.tensor([2, 0, 0]))
    assert rows_of(cache) == [[2, 0, 0]] * 4
    cache.reorder_cache(torch.tensor([0, 0, 1, 1, 2, 2]))
    assert rows_of(cache) == [[2, 2, 0, 0, 0, 0]] * 4
    cache.reorder_cache(torch.tensor([5]))
    assert rows_of(cache) == [[0]] * 4
    assert cache.get_seq_length() == 7


def test_beams_of_one_source_keep_its_attention_keys() -> None:
    state = tuple(torch.arange(2.0).view(1, 2, 1) for _ in range(2))
    cache = RecurrentCache(state, torch.randn(2, 3, 4))
    cache.reorder_cache(torch.tensor([0, 0, 0, 1, 1, 1]))
    keys = cache.attention_keys
    assert cache.beams == 3
    cache.reorder_cache(torch.tensor([2, 0, 1, 3, 3, 5]))
    assert cache.attention_keys is keys and cache.beams == 3
    cache.reorder_cache(torch.tensor([3, 4, 5]))
    assert torch.equal(cache.attention_keys, keys[3:]) and cache.beams == 3
    assert cache.state[0].flatten().tolist() == [1.0, 1.0, 1.0]
