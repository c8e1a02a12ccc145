"""`dtype="int8"`: the equation, what stays as it was, and where it cannot run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hf_paraphrase import Paraphraser
from hf_paraphrase.errors import InputError
from hf_paraphrase.generation.int8 import Int8Linear, quantize_linears
from hf_paraphrase.generation.loading import load_paraphraser

from .paraphrasers import PARAPHRASERS, make_paraphraser

TEXTS = ["how do i learn faster ?", "the cat sat"]


@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_it_is_the_product_of_rounded_rows_and_channels(bias: bool) -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(40, 24, bias=bias), 3 * torch.randn(2, 5, 40)
    x[0, 0] = 0
    weight_scale = linear.weight.abs().amax(1, keepdim=True) / 127
    input_scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 63
    weight, rows = (linear.weight / weight_scale).round() * weight_scale, (x / input_scale).round() * input_scale
    torch.testing.assert_close(Int8Linear(linear)(x), nn.functional.linear(rows, weight, linear.bias))


@torch.no_grad()
def test_no_row_depends_on_the_others() -> None:
    torch.manual_seed(0)
    layer, rows = Int8Linear(nn.Linear(32, 16)), torch.randn(6, 32)
    assert torch.equal(layer(torch.cat((rows, 1000 * rows)))[:6], layer(rows))


def test_gradients_are_those_of_single_precision() -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(32, 16), torch.randn(3, 32)
    assert torch.equal(Int8Linear(linear)(x), linear(x))


def test_the_released_model_says_nearly_the_same_and_saves_the_same() -> None:
    exact, tokenizer = load_paraphraser(device="cpu", dtype="float32")
    model, _ = load_paraphraser(device="cpu", dtype="int8")
    assert type(model.lm_head) is Int8Linear
    assert model.lm_head.weight is model.get_input_embeddings().weight
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    before, after = exact.state_dict(), model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    inputs = tokenizer(["how can i learn to cook ?", "the cat sat on the mat ."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected, found = (
            m(**inputs, decoder_input_ids=inputs.input_ids).logits.log_softmax(-1) for m in (exact, model)
        )
    assert (expected.exp() - found.exp()).abs().sum(-1).mean() < 0.2  # twice the total variation
    assert Paraphraser(model, tokenizer)("How can I learn to cook?")


@pytest.mark.parametrize("family", PARAPHRASERS)
def test_every_family_paraphrases_with_it(family: str, monkeypatch) -> None:
    monkeypatch.setattr("hf_paraphrase.generation.int8.FEWEST_OUTPUTS", 1)
    paraphraser = make_paraphraser.__wrapped__(family)  # not the one that other tests share
    quantize_linears(paraphraser.model)
    assert not any(type(module) is nn.Linear for module in paraphraser.model.modules())
    batch, alone = paraphraser(TEXTS), [paraphraser(text) for text in TEXTS]
    assert [str(found) for found in batch] == [str(found) for found in alone]


def test_where_it_cannot_run_is_told(monkeypatch) -> None:
    with pytest.raises(InputError, match='runs on the CPU alone: pass `device="cpu"`'):
        quantize_linears(nn.Linear(4, 4, device="meta"))
    with pytest.raises(InputError, match="no linear layers to quantise"):
        quantize_linears(nn.Sequential(nn.LSTM(4, 4)))
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["qnnpack"])
    with pytest.raises(InputError, match="needs PyTorch with FBGEMM"):
        quantize_linears(nn.Sequential(nn.Linear(4, 4)))
