"""`dtype="int8"`: the equations, what a model keeps and gives up, and where it cannot run."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from hf_paraphrase import Paraphraser, ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.int8 import (
    Int8Embedding,
    Int8Linear,
    Int8Lstm,
    _pack,
    count_parameters,
    quantize_weights,
)
from hf_paraphrase.generation.loading import load_paraphraser

from .paraphrasers import PARAPHRASERS, make_paraphraser

TEXTS = ["how do i learn faster ?", "the cat sat"]


def rounded(matrix: torch.Tensor, largest: torch.Tensor | None = None) -> torch.Tensor:
    step = (matrix.abs().amax(-1, keepdim=True) if largest is None else largest).clamp_min(1e-30) / 127
    return (matrix / step).round() * step


def rounded_weight(weight: torch.Tensor) -> torch.Tensor:
    """A step of which 127 come to the largest weight and to the largest sum of two neighbours."""
    pairs = nn.functional.pad(weight, (0, weight.shape[1] % 2)).unflatten(1, (-1, 2)).sum(2)
    return rounded(weight, torch.cat((weight, pairs), dim=1).abs().amax(1, keepdim=True))


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return nn.functional.linear(rounded(x), rounded_weight(weight), bias)


def quantize(linear: nn.Linear) -> Int8Linear:
    return Int8Linear(linear.weight, linear.bias)


def make_lstm(vocab_size: int = 600, **sizes) -> ResidualLstmForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"embedding_size": 128, "hidden_size": 128, "num_layers": 4, "attention": "additive"} | sizes
    return ResidualLstmForConditionalGeneration(ResidualLstmConfig(vocab_size=vocab_size, **sizes)).eval()


def storage_bytes(model: nn.Module) -> int:
    """Of all that the model holds; packed weights take a byte each."""
    tensors = {t.data_ptr(): t for t in (*model.parameters(), *model.buffers())}.values()
    packed = (m.in_features * m.out_features for m in model.modules() if isinstance(m, Int8Linear))
    return sum(t.numel() * t.element_size() for t in tensors) + sum(packed)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("at_once", [10, 4096])
@torch.no_grad()
def test_it_is_the_product_of_rounded_rows_and_channels(bias: bool, at_once: int, monkeypatch) -> None:
    monkeypatch.setattr("hf_paraphrase.generation.int8.OUTPUTS_AT_ONCE", at_once)
    torch.manual_seed(0)
    linear, x = nn.Linear(41, 24, bias=bias), 3 * torch.randn(2, 5, 41)
    x[0, 0] = 0
    torch.testing.assert_close(quantize(linear)(x), product(x, linear.weight, linear.bias))
    assert quantize(linear)(x[:0]).shape == (0, 5, 24)
    torch.testing.assert_close(quantize(linear).weight(), rounded_weight(linear.weight))


@torch.no_grad()
def test_no_sum_of_two_products_overflows() -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 16, bias=False), torch.ones(1, 64)
    linear.weight.fill_(0.5)
    torch.testing.assert_close(quantize(linear)(x), torch.full((1, 16), 32.0), rtol=0.01, atol=0)
    integers = torch.ops.quantized.linear_unpack(_pack(torch.randn(500, 64)))[0].int_repr().int()
    assert 120 < (integers[:, ::2] + integers[:, 1::2]).abs().max() <= 128 and integers.abs().max() == 127


@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_no_row_depends_on_the_others(bias: bool) -> None:
    torch.manual_seed(0)
    layer, rows = quantize(nn.Linear(32, 19, bias=bias)), torch.randn(6, 32)
    assert torch.equal(layer(torch.cat((rows, 1000 * rows)))[:6], layer(rows))
    lstm, x = Int8Lstm(nn.LSTM(32, 24, 2, bidirectional=True, batch_first=True)), torch.randn(3, 5, 32)
    for row in range(3):
        torch.testing.assert_close(lstm(x)[0][row : row + 1], lstm(x[row : row + 1])[0], rtol=0, atol=1e-6)


def naive_lstm(x: torch.Tensor, weights: list[torch.Tensor], h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """One direction over `(length, input_size)` of one row, by rounded operands."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    outputs = []
    for word in x:
        gates = product(word, weight_ih) + product(h, weight_hh) + bias_ih + bias_hh
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs)


@pytest.mark.parametrize(("bidirectional", "at_once"), [(False, 4096), (True, 4096), (False, 40)])
@torch.no_grad()
def test_an_lstm_is_that_of_rounded_operands(bidirectional: bool, at_once: int, monkeypatch) -> None:
    monkeypatch.setattr("hf_paraphrase.generation.int8.OUTPUTS_AT_ONCE", at_once)
    torch.manual_seed(0)
    lstm = nn.LSTM(20, 24, 2, batch_first=True, bidirectional=bidirectional)
    directions = 2 if bidirectional else 1
    x, lengths = torch.randn(3, 6, 20), [4, 6, 1]
    state = tuple(2 * torch.randn(2 * directions, 3, 24) for _ in range(2))
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, finals = Int8Lstm(lstm)(packed, state)
    assert isinstance(outputs, PackedSequence)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
    for row, length in enumerate(lengths):
        words = x[row, :length]
        for layer in range(2):
            passes = []
            for direction in range(directions):
                place = layer * directions + direction
                start = (part[place, row] for part in state)
                passes.append(naive_lstm(words.flip(0) if direction else words, lstm.all_weights[place], *start))
                torch.testing.assert_close(finals[0][place, row], passes[-1][-1], rtol=0, atol=1e-5)
            words = torch.cat((passes[0], *(one.flip(0) for one in passes[1:])), dim=1)
        torch.testing.assert_close(outputs[row, :length], words, rtol=0, atol=1e-5)
        assert (outputs[row, length:] == 0).all()


@torch.no_grad()
def test_an_lstm_does_nearly_what_it_did_step_by_step_too() -> None:
    torch.manual_seed(0)
    lstm, x = nn.LSTM(32, 32, 2, batch_first=True), torch.randn(3, 5, 32)
    int8, state = Int8Lstm(lstm), None
    expected, _ = lstm(x)
    whole, final = int8(x)
    torch.testing.assert_close(whole, expected, rtol=0, atol=0.02)
    for place in range(5):
        output, state = int8(x[:, place : place + 1], state)
        torch.testing.assert_close(output[:, 0], whole[:, place])
    torch.testing.assert_close(state, final)


@torch.no_grad()
def test_a_table_has_rounded_words() -> None:
    torch.manual_seed(0)
    table, ids = nn.Embedding(30, 8, padding_idx=0), torch.tensor([[0, 5], [29, 5]])
    int8 = Int8Embedding(table)
    torch.testing.assert_close(int8.weight, rounded(table.weight))
    assert torch.equal(int8(ids), int8.weight[ids]) and (int8(ids)[0, 0] == 0).all()
    assert (int8.num_embeddings, int8.embedding_dim, int8.padding_idx) == (30, 8, 0)


def test_there_are_no_gradients() -> None:
    with pytest.raises(InputError, match='has no gradients: load it with `dtype="float32"`'):
        quantize(nn.Linear(32, 16))(torch.randn(3, 32, requires_grad=True))


@pytest.mark.parametrize("bidirectional", [False, True])
@torch.no_grad()
def test_a_residual_lstm_keeps_no_weights_in_single_precision(bidirectional: bool) -> None:
    exact, model = (make_lstm(bidirectional_encoder=bidirectional) for _ in range(2))
    quantize_weights(model)
    assert all(
        type(group) is Int8Lstm for group in (*model.model.encoder.lstm.groups, *model.model.decoder.lstm.groups)
    )
    assert storage_bytes(model) < 0.32 * storage_bytes(exact)
    assert count_parameters(model) == exact.num_parameters()
    ids = torch.randint(4, 600, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids}
    found, expected = model(**inputs, output_hidden_states=True), exact(**inputs, output_hidden_states=True)
    torch.testing.assert_close(found.logits, model(**inputs).logits)
    torch.testing.assert_close(found.logits.log_softmax(-1), expected.logits.log_softmax(-1), rtol=0, atol=0.06)
    assert len(found.decoder_hidden_states) == len(expected.decoder_hidden_states)


def test_the_released_model_says_nearly_the_same() -> None:
    exact, tokenizer = load_paraphraser(device="cpu", dtype="float32")
    model, _ = load_paraphraser(device="cpu", dtype="int8")
    assert type(model.lm_head) is Int8Linear and type(model.get_input_embeddings()) is Int8Embedding
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    assert storage_bytes(model) < 0.335 * storage_bytes(exact)
    inputs = tokenizer(["how can i learn to cook ?", "the cat sat on the mat ."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected, found = (
            m(**inputs, decoder_input_ids=inputs.input_ids).logits.log_softmax(-1) for m in (exact, model)
        )
    assert (expected.exp() - found.exp()).abs().sum(-1).mean() < 0.2  # twice the total variation
    paraphraser = Paraphraser(model, tokenizer)
    assert paraphraser("How can I learn to cook?")
    assert f"{exact.num_parameters():,} parameters" in repr(paraphraser)


def test_it_is_not_saved_and_not_converted(tmp_path) -> None:
    pytest.importorskip("ctranslate2")
    paraphraser = make_paraphraser.__wrapped__("bart")
    quantize_weights(paraphraser.model)
    with pytest.raises(InputError, match='cannot be saved or converted: load it with `dtype="float32"`'):
        paraphraser.model.save_pretrained(tmp_path / "saved")
    with pytest.raises(InputError, match='cannot be saved or converted: load it with `dtype="float32"`'):
        Paraphraser(paraphraser.model, paraphraser.tokenizer, backend="ctranslate2")
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize("family", PARAPHRASERS)
def test_every_family_paraphrases_with_it(family: str, monkeypatch) -> None:
    monkeypatch.setattr("hf_paraphrase.generation.int8.FEWEST_OUTPUTS", 1)
    monkeypatch.setattr("hf_paraphrase.generation.int8.FEWEST_TABLE_WEIGHTS", 1)
    paraphraser = make_paraphraser.__wrapped__(family)  # not the one that other tests share
    quantize_weights(paraphraser.model)
    kept = (nn.Linear, nn.LSTM)
    assert not any(type(module) in kept for module in paraphraser.model.modules())
    batch, alone = paraphraser(TEXTS), [paraphraser(text) for text in TEXTS]
    assert [str(found) for found in batch] == [str(found) for found in alone]


def test_where_it_cannot_run_is_told(monkeypatch) -> None:
    with pytest.raises(InputError, match='runs on the CPU alone: pass `device="cpu"`'):
        quantize_weights(nn.Linear(4, 4, device="meta"))
    with pytest.raises(InputError, match="no linear layers or LSTMs to quantise"):
        quantize_weights(nn.Sequential(nn.GRU(4, 4)))
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["qnnpack"])
    with pytest.raises(InputError, match="needs PyTorch with FBGEMM"):
        quantize_weights(nn.Sequential(nn.Linear(4, 4)))
