from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.edit_lstm.configuration_edit_lstm import EditLstmConfig
from hf_paraphrase.models.hierarchical_autoencoder.configuration_hierarchical_autoencoder import (
    HierarchicalAutoencoderConfig,
)
from hf_paraphrase.models.layers.token_ids import shift_tokens_right
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import (
    ResidualLstmForConditionalGeneration,
    ResidualLstmModel,
)

from . import naive
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin


class TestResidualLstm(Seq2SeqMixin):
    config_class = ResidualLstmConfig
    base_class = ResidualLstmModel
    model_class = ResidualLstmForConditionalGeneration
    variants = {
        "default": {},
        "sequence to sequence": {"residual_interval": 0, "num_layers": 2},
        "attention": {"attention": "additive", "residual_interval": 0, "attention_size": 5},
        "bidirectional": {"bidirectional_encoder": True, "residual_interval": 0},
        "everything": {
            "attention": "additive",
            "bidirectional_encoder": True,
            "share_embeddings": False,
            "embedding_size": 5,
        },
        "widths differ": {"embedding_size": 11, "num_layers": 3},
    }

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "embedding_size": 8, "hidden_size": 8, "num_layers": 4}
        return ResidualLstmConfig(**{**sizes, **overrides})

    def test_equals_the_paper_s_equations(self, variant):
        model = self.small_model(variant).double()
        for source, target in zip(SOURCES, TARGETS, strict=True):
            decoder_inputs = [1, *target[:-1]]
            expected = naive.residual_lstm(model, source, decoder_inputs)
            outputs = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([decoder_inputs]))
            torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-10)

    def test_number_of_hidden_states(self, variant):
        model = self.small_model(variant)
        outputs = model(**self.batch(), output_hidden_states=True)
        assert len(outputs.decoder_hidden_states) == model.config.num_layers + 1
        assert len(outputs.encoder_hidden_states) == model.config.encoder_layers + 1


@pytest.mark.parametrize(
    ("options", "millions"),
    [
        # Two tables of 30,332 x 512 words (in, out) with an output bias, and 2,101,248 weights a layer of 512 units.
        ({"num_layers": 2}, 2 * 30332 * 512 + 30332 + 4 * 2_101_248),
        ({"num_layers": 4}, 2 * 30332 * 512 + 30332 + 8 * 2_101_248),
        ({"num_layers": 4, "residual_interval": 0}, 2 * 30332 * 512 + 30332 + 8 * 2_101_248),
    ],
)
def test_residual_connections_add_no_parameter(options, millions):
    with torch.device("meta"):
        model = ResidualLstmForConditionalGeneration(ResidualLstmConfig(**options))
    assert model.num_parameters() == millions


def test_weights_start_uniform():
    model = ResidualLstmForConditionalGeneration(
        ResidualLstmConfig(vocab_size=50, embedding_size=32, hidden_size=32, initializer_range=0.08)
    )
    for name, weight in model.named_parameters():
        assert weight.abs().max() <= 0.08, name
        rows = weight[1:] if "embed_tokens" in name else weight
        # The standard deviation of a uniform distribution of half-width 0.08.
        assert abs(rows.std().item() - 0.08 / 3**0.5) < 0.012, name
    assert not model.get_input_embeddings().weight[0].any()


@pytest.mark.parametrize(("hidden_size", "expected"), [(1000, 0.08), (250, 0.16), (10, 0.8)])
def test_narrow_layers_start_with_larger_weights(hidden_size, expected):
    assert ResidualLstmConfig(hidden_size=hidden_size).initializer_range == pytest.approx(expected)
    assert EditLstmConfig(hidden_size=hidden_size, edit_vector_size=2).initializer_range == pytest.approx(expected)
    assert HierarchicalAutoencoderConfig(hidden_size=hidden_size).initializer_range == pytest.approx(expected)
    given = ResidualLstmConfig(hidden_size=hidden_size, initializer_range=0.05)
    assert ResidualLstmConfig.from_dict(given.to_dict()).initializer_range == 0.05


def test_labels_shift_behind_the_start_token_wherever_padding_stands():
    labels = torch.tensor([[5, 6, 2, -100], [-100, 5, 6, 2], [-100, -100, -100, -100], [5, -100, 6, 2]])
    expected = [[1, 5, 6, 2], [1, 1, 5, 6], [1, 1, 1, 1], [1, 5, 0, 6]]
    assert shift_tokens_right(labels, pad_token_id=0, decoder_start_token_id=1).tolist() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "`dropout` must be in"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"residual_interval": -1}, "`residual_interval` must be 0"),
        ({"num_layers": 3, "bidirectional_encoder": True}, "must be even, not 3"),
        ({"input_feeding": True}, "`input_feeding` can no longer be True"),
        ({"tie_word_embeddings": True, "embedding_size": 3}, "needs `embedding_size`"),
        ({"attention": "dot"}, "attention"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        ResidualLstmConfig(**options)


def test_a_configuration_of_an_earlier_version_still_loads():
    assert "input_feeding" not in ResidualLstmConfig.from_dict({"input_feeding": False}).to_dict()


def test_encoder_outputs_of_another_model_are_refused():
    from transformers.modeling_outputs import BaseModelOutput

    model = ResidualLstmForConditionalGeneration(ResidualLstmConfig(vocab_size=10, embedding_size=4, hidden_size=4))
    with pytest.raises(ValueError, match="carries the final state"):
        model(encoder_outputs=BaseModelOutput(torch.zeros(1, 2, 4)), decoder_input_ids=torch.tensor([[1]]))


def test_missing_inputs_are_named():
    model = ResidualLstmForConditionalGeneration(ResidualLstmConfig(vocab_size=10, embedding_size=4, hidden_size=4))
    with pytest.raises(ValueError, match="`decoder_input_ids` or `decoder_inputs_embeds`"):
        model(input_ids=torch.tensor([[3]]))
    with pytest.raises(ValueError, match="`input_ids` or `inputs_embeds`"):
        model(decoder_input_ids=torch.tensor([[1]]))
