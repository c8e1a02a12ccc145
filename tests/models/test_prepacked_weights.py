from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from hf_paraphrase.models.layers.products import MANY_ROWS, PrepackedWeights, can_prepack, prepacked
from hf_paraphrase.models.layers.recurrent import RecurrentCache, StackedLstm, count_source_beams
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration

from . import naive

SOURCES = torch.tensor([[4, 5, 6, 0], [7, 8, 9, 4], [5, 5, 0, 0]])
STEPS = torch.tensor([[1, 5, 7], [1, 6, 6], [1, 9, 4]])


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        if not can_prepack(torch.zeros(4), torch.zeros(1)):
            pytest.skip("this CPU has no packed layout")
        yield


def make_model(**options) -> ResidualLstmForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"vocab_size": 10, "embedding_size": 8, "hidden_size": 8, "num_layers": 4, "initializer_range": 0.8}
    return ResidualLstmForConditionalGeneration(ResidualLstmConfig(**{**sizes, **options})).eval()


@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_is_the_layer(bias: bool) -> None:
    layer, packed, x = nn.Linear(5, 7, bias=bias), PrepackedWeights(), torch.randn(4, 1, 5)
    for _ in range(2):
        torch.testing.assert_close(packed.linear(layer, x), layer(x))


def test_weights_are_packed_once_and_a_copy_packs_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, packed, x = nn.Linear(5, 7), PrepackedWeights(), torch.randn(4, 1, 5)
    before = packed.linear(layer, x)
    layer.weight.zero_()
    assert torch.equal(packed.linear(layer, x), before)
    torch.testing.assert_close(copy.deepcopy(packed).linear(layer, x), layer(x))


@pytest.mark.parametrize("x", [torch.ones(4, 2, 5), torch.ones(4, 1, 5, dtype=torch.float64)])
def test_several_positions_and_double_precision_are_left_alone(x: torch.Tensor) -> None:
    layer, packed = nn.Linear(5, 7).to(x.dtype), PrepackedWeights()
    before = packed.linear(layer, x)
    layer.weight.zero_()
    assert not torch.equal(packed.linear(layer, x), before)


def test_gradients_autocast_and_other_layers_are_left_alone() -> None:
    packed, x = PrepackedWeights(), torch.randn(4, 1, 5)
    with torch.enable_grad():
        assert packed.linear(nn.Linear(5, 7), x).requires_grad
    with torch.autocast("cpu", torch.bfloat16):
        assert packed.linear(nn.Linear(5, 7), x).dtype == torch.bfloat16
    assert torch.equal(packed.linear(nn.Sequential(nn.ReLU()), x), x.relu())


@pytest.mark.parametrize(
    "options",
    [
        dict(input_size=5, hidden_size=5, num_layers=3),
        dict(input_size=7, hidden_size=4, num_layers=5, residual_interval=2),
        dict(input_size=3, hidden_size=4, num_layers=2, residual_interval=1, cell_output="identity"),
    ],
)
@pytest.mark.parametrize("rows", [1, 4, 6])
def test_packed_steps_equal_the_whole(options: dict, rows: int) -> None:
    torch.manual_seed(0)
    stack, packed = StackedLstm(**options).eval(), PrepackedWeights()
    inputs = torch.randn(rows, 6, options["input_size"])
    state = tuple(torch.randn(options["num_layers"], rows, options["hidden_size"]) for _ in range(2))
    outputs, final, _ = stack(inputs, None, state)
    for t in range(inputs.shape[1]):
        step, state, _ = stack(inputs[:, t : t + 1], None, state, prepacked=packed)
        torch.testing.assert_close(step[:, 0], outputs[:, t])
    torch.testing.assert_close(state, final)


@pytest.mark.parametrize("options", [{}, {"attention": "additive"}])
@pytest.mark.parametrize("beams", [1, 3])
def test_steps_of_beams_equal_the_equations(options: dict, beams: int) -> None:
    model = make_model(**options)
    source, rows = SOURCES.repeat_interleave(beams, dim=0), len(SOURCES) * beams
    mask, steps = (source != 0).long(), STEPS.repeat_interleave(beams, dim=0)
    steps[:, 2] = torch.randint(4, 10, (rows,))
    # As `generate()` does: rows that are encoded apart may differ in the last bit.
    encoded = {"encoder_outputs": model.get_encoder()(SOURCES, (SOURCES != 0).long())}
    _, encoded = model._expand_inputs_for_generation(expand_size=beams, is_encoder_decoder=True, **encoded)
    cache, logits = None, []
    for t in range(steps.shape[1]):
        step = {"decoder_input_ids": steps[:, t : t + 1], "cache": cache}
        outputs = model(attention_mask=mask, use_cache=True, **encoded, **step)
        cache = outputs.cache
        logits.append(outputs.logits)
    assert cache.beams == (beams if options else 1)
    for row, found in enumerate(torch.cat(logits, dim=1)):
        words = [word for word in source[row].tolist() if word]
        torch.testing.assert_close(found, naive.residual_lstm(model, words, steps[row].tolist()))


def test_beams_of_one_source_with_masks_of_their_own() -> None:
    model = make_model(attention="additive")
    source = SOURCES[1:2].expand(2, -1)
    encoded = model.get_encoder()(source, torch.ones_like(source))
    step = {"decoder_input_ids": torch.ones(2, 1, dtype=torch.long), "encoder_outputs": encoded}
    masks = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    both = model(attention_mask=masks, **step).logits
    alone = [model(attention_mask=mask.expand(2, -1), **step).logits[0] for mask in masks]
    torch.testing.assert_close(both, torch.stack(alone))
    assert not torch.allclose(*both)


def test_weights_that_change_between_two_outputs_count() -> None:
    model = make_model(attention="additive")
    model.generation_config.eos_token_id = None
    write = lambda: model.generate(SOURCES, attention_mask=(SOURCES != 0).long(), num_beams=2, max_new_tokens=4)  # noqa: E731
    write()
    model.lm_head.bias.data[6] = 100.0
    model.lm_head.weight.data.zero_()
    assert (write()[:, 1:] == 6).all()


@pytest.mark.parametrize("options", [{}, {"attention": "additive"}])
def test_half_precision_comes_close(options: dict) -> None:
    model = make_model(**options)
    expected = model(input_ids=SOURCES, decoder_input_ids=STEPS).logits
    model.bfloat16()
    cache, logits = None, []
    encoded = model.get_encoder()(SOURCES, None)
    for t in range(STEPS.shape[1]):
        step = {"decoder_input_ids": STEPS[:, t : t + 1], "cache": cache}
        outputs = model(encoder_outputs=encoded, use_cache=True, **step)
        cache = outputs.cache
        logits.append(outputs.logits)
    assert outputs.logits.dtype == torch.bfloat16
    assert {part.dtype for part in cache.state} == {torch.bfloat16}
    torch.testing.assert_close(torch.cat(logits, dim=1).float(), expected, rtol=0, atol=0.1)


def test_which_rows_read_one_source() -> None:
    memory = torch.arange(3.0).view(3, 1, 1).expand(3, 2, 2)
    assert count_source_beams(memory) == 1
    assert count_source_beams(memory[:1]) == 1
    assert count_source_beams(memory.repeat_interleave(4, dim=0)) == 4
    assert count_source_beams(memory[[0, 0, 1, 1, 1, 1, 2, 2]]) == 2
    assert count_source_beams(memory[[0, 0, 1, 1, 1]]) == 1
    assert count_source_beams(memory[[1, 1, 1]]) == 3


def test_keys_are_copied_only_where_a_row_changes_its_source() -> None:
    def make_cache() -> RecurrentCache:
        state = (torch.arange(6.0).view(1, 6, 1).expand(1, 6, 2),) * 2
        keys = torch.tensor([0.0, 0, 0, 1, 1, 1]).view(6, 1, 1).expand(6, 2, 2)
        return RecurrentCache(state, keys, beams=3)

    cache = make_cache()
    keys = cache.attention_keys
    cache.reorder_cache(torch.tensor([2, 0, 0, 4, 5, 3]))
    assert cache.attention_keys is keys and cache.beams == 3
    assert cache.state[0][0, :, 0].tolist() == [2, 0, 0, 4, 5, 3]
    for indices, sources, beams in (
        ([3, 4, 5], [1, 1, 1], 3),
        ([0, 1, 4, 5], [0, 0, 1, 1], 2),
        ([0, 1, 2, 3], [0, 0, 0, 1], 1),
        ([3, 4, 5, 0, 0, 0], [1, 1, 1, 0, 0, 0], 3),
    ):
        cache = make_cache()
        cache.reorder_cache(torch.tensor(indices))
        assert cache.attention_keys[:, 0, 0].tolist() == sources
        assert cache.beams == beams
    cache = make_cache()
    cache.reorder_cache(torch.arange(6).repeat_interleave(2))
    assert cache.beams == 6


def test_linear_layers_multiply_by_packed_weights_within_a_call() -> None:
    model, x = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3, bias=False)), torch.randn(MANY_ROWS, 5)
    whole, few = model(x), model(x[:2])
    with prepacked(model):
        torch.testing.assert_close(model(x[:2]), few)
        assert model[0].forward.packed is None  # so few rows do not pay
        with prepacked(model):
            torch.testing.assert_close(model(x), whole)
        assert model[0].forward.packed is not None  # the outer call goes on
        torch.testing.assert_close(model(x), whole)
    assert all("forward" not in vars(layer) for layer in model)
    nn.init.ones_(model[0].weight)
    with prepacked(model):
        torch.testing.assert_close(model(x), model[2](torch.relu(x.sum(1, keepdim=True) + model[0].bias)))


def test_a_call_that_fails_leaves_the_layers_as_they_were() -> None:
    model = nn.Sequential(nn.Linear(5, 7))
    with pytest.raises(KeyError), prepacked(model):
        raise KeyError
    assert "forward" not in vars(model[0])
