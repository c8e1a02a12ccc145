from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.ssru_transformer.configuration_ssru_transformer import SsruTransformerConfig
from hf_paraphrase.models.ssru_transformer.modeling_ssru_transformer import (
    Ssru,
    SsruTransformerForConditionalGeneration,
    SsruTransformerModel,
)

from . import naive_ssru_transformer
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin


class TestSsruTransformer(Seq2SeqMixin):
    config_class = SsruTransformerConfig
    base_class = SsruTransformerModel
    model_class = SsruTransformerForConditionalGeneration
    variants = {"default": {}, "untied": {"tie_word_embeddings": False, "scale_embedding": False}}
    opt_outs = {"separate_embeddings": "source and target have one language and one table of words"}

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "d_model": 8, "encoder_layers": 2, "encoder_ffn_dim": 6, "decoder_ffn_dim": 5}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 4}
        return SsruTransformerConfig(**{**sizes, **heads, "dropout": 0.0, **overrides})

    def small_model(self, variant: str = "default", **overrides):
        model = super().small_model(variant, **overrides)
        # Normalisations of random gain would let through little of what came before the last of them.
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                torch.nn.init.uniform_(module.weight, 0.8, 1.2)
        return model

    @pytest.mark.parametrize("row", range(len(SOURCES)))
    def test_equals_the_paper_s_equations(self, variant, row):
        model, inputs = self.small_model(variant).double(), [1, *TARGETS[row][:-1]]
        expected = naive_ssru_transformer.ssru_transformer(model, SOURCES[row], inputs)
        outputs = model(torch.tensor([SOURCES[row]]), decoder_input_ids=torch.tensor([inputs]))
        torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-9)

    def test_the_first_token_decides_what_is_written(self):
        """It can tell the model how far to go: `generate()` takes it as a number, and all beams begin with it."""
        model, inputs = self.small_model(), self.batch()
        inputs.pop("labels")
        for num_beams in (1, 3):
            written = model.generate(
                **inputs,
                decoder_start_token_id=7,
                num_beams=num_beams,
                max_new_tokens=5,
                output_logits=True,
                return_dict_in_generate=True,
            )
            assert (written.sequences[:, 0] == 7).all()
            expected = model(**inputs, decoder_input_ids=torch.full((len(SOURCES), 1), 7)).logits[:, 0]
            torch.testing.assert_close(written.logits[0][::num_beams], expected, rtol=0, atol=1e-5)
            usual = model(**inputs, decoder_input_ids=torch.full((len(SOURCES), 1), 1)).logits[:, 0]
            assert (usual - expected).abs().max() > 1e-3

    def test_the_cache_does_not_grow(self):
        model, batch = self.small_model(), self.batch()
        batch.pop("labels")
        sizes = []
        for length in (1, 4):
            ids = torch.full((len(SOURCES), length), 5)
            cache = model(**batch, decoder_input_ids=ids, use_cache=True).cache
            sizes.append([layer.keys.shape for layer in cache.self_attention_cache.layers])
            assert cache.get_seq_length() == length
        assert sizes[0] == sizes[1] == [(len(SOURCES), 1, 1, 8)] * 2


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_a_unit_equals_the_paper_s_equations(dtype, tolerance):
    torch.manual_seed(0)
    unit, inputs = Ssru(16, 0).to(dtype), torch.randn(3, 30, 16, dtype=dtype)
    outputs, _ = unit(inputs)
    expected = torch.stack([torch.stack(naive_ssru_transformer.ssru(unit, row)) for row in inputs])
    torch.testing.assert_close(outputs, expected, rtol=0, atol=tolerance)


def test_a_unit_computes_states_in_single_precision():
    """In bfloat16 a state that hardly forgets would stand still."""
    unit = Ssru(1, 0).to(torch.bfloat16)
    with torch.no_grad():
        unit.w.weight.fill_(1.0)
        unit.f.weight.zero_()
        unit.f.bias.fill_(7.0)
    outputs, _ = unit(torch.ones(1, 2000, 1, dtype=torch.bfloat16))
    assert outputs.dtype == torch.bfloat16 and outputs[0, -1] > 0.8


def test_sizes_of_bergamot_s_students():
    """Per layer 4 matrices of an attention, the two of the feed-forward block, 2 of an SSRU, biases and norms."""
    with torch.device("meta"):
        model = SsruTransformerForConditionalGeneration(SsruTransformerConfig())
    norm, attention, inner = 2 * 256, 4 * (256 * 256 + 256), 2 * 256 * 1536 + 1536 + 256
    encoder, decoder = attention + inner + 2 * norm, 2 * 256 * 256 + 256 + attention + inner + 3 * norm
    assert model.num_parameters() == 16000 * 257 + 6 * encoder + 2 * decoder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decoder_layers": 0}, "`decoder_layers` must be at least 1"),
        ({"d_model": 9}, "must be even, not 9"),
        ({"decoder_attention_heads": 3}, r"`decoder_attention_heads` \(3\) must divide `d_model` \(256\)"),
        ({"dropout": 1.0}, "`dropout` must be in"),
        ({"share_encoder_decoder_embeddings": False}, "share one table of words"),
        ({"decoder_vocab_size": 7}, "share one table of words"),
        ({"encoder_layerdrop": 0.1}, "whole layers are never dropped"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        SsruTransformerConfig(**options)


def test_missing_inputs_are_named():
    model = SsruTransformerForConditionalGeneration(TestSsruTransformer().small_config())
    with pytest.raises(ValueError, match="`decoder_input_ids` or `decoder_inputs_embeds`"):
        model(input_ids=torch.tensor([[3]]))
    with pytest.raises(ValueError, match="`input_ids` or `inputs_embeds`"):
        model(decoder_input_ids=torch.tensor([[1]]))
