from __future__ import annotations

import pytest
import torch

from hf_paraphrase import PairLstmConfig, PairLstmForSequenceClassification
from tests.models import naive_pair_lstm as naive
from tests.models.pair_mixin import FIRST, LABELS, SECOND, SentencePairMixin, two_sequences


class TestPairLstm(SentencePairMixin):
    opt_outs = {"gradient_checkpointing": "it has no layers above each other to run again"}
    config_class = PairLstmConfig
    model_class = PairLstmForSequenceClassification
    variants = {encoder: {"encoder": encoder} for encoder in ("nbow", "single", "parallel", "attention")}

    def small_config(self, **overrides):
        return PairLstmConfig(**{"vocab_size": 10, "embedding_size": 3, "hidden_size": 4} | overrides)

    def test_values_and_gradients_equal_the_equations(self, variant):
        model = self.small_model(variant).double()
        logits = model(**two_sequences()).logits
        expected = torch.stack([naive.logits(model, x, y) for x, y in zip(FIRST, SECOND, strict=True)])
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
        weights = torch.randn(logits.shape, dtype=torch.float64)
        parameters = dict(model.named_parameters())
        slow = torch.autograd.grad((expected * weights).sum(), [*parameters.values()])
        fast = torch.autograd.grad((logits * weights).sum(), [*parameters.values()])
        for name, gradient, right in zip(parameters, fast, slow, strict=True):
            torch.testing.assert_close(gradient, right, rtol=0, atol=1e-10, msg=name)

    def test_every_parameter_learns(self, variant):
        model = self.small_model(variant).train()
        model(**two_sequences(), labels=torch.tensor(LABELS)).loss.backward()
        assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []

    def test_compiled_forward_equals_plain(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        compiled = torch.compile(model, backend="eager")
        torch.testing.assert_close(compiled(**batch).logits, model(**batch).logits)

    def test_a_sentence_without_words_changes_no_other_row(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        expected = model(**batch).logits
        for name in ("attention_mask", "pair_attention_mask"):
            mask = batch[name].clone()
            mask[1] = 0
            logits = model(**batch | {name: mask}).logits
            assert logits.isfinite().all()
            torch.testing.assert_close(logits[[0, 2, 3, 4]], expected[[0, 2, 3, 4]])


@pytest.mark.parametrize(
    ("encoder", "parameters"),
    [
        # At 100/100: a tanh layer and three labels on what the encoder gives; LSTMs of 4·100·(100+100) + 2·400.
        ("nbow", 20_100 + 303),
        ("single", 80_800 + 10_100 + 303),
        ("parallel", 2 * 80_800 + 20_100 + 303),
        # W_y, W_h, W_r, W_t, W_p, W_x and w.
        ("attention", 2 * 80_800 + 60_100 + 10_100 + 303),
    ],
)
def test_parameters_without_embeddings(encoder, parameters):
    config = PairLstmConfig(encoder=encoder, vocab_size=10, embedding_size=100, hidden_size=100, num_labels=3)
    model = PairLstmForSequenceClassification(config)
    assert model.num_parameters() - model.embed_tokens.weight.numel() == parameters


def test_an_unknown_encoder_is_refused():
    with pytest.raises(Exception, match="encoder"):
        PairLstmConfig(encoder="transformer")
