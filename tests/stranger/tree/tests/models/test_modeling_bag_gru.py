from __future__ import annotations

import torch

from hf_paraphrase.models.bag_gru.configuration_bag_gru import BagGruConfig
from hf_paraphrase.models.bag_gru.modeling_bag_gru import BagGruForConditionalGeneration, BagGruModel

from .modeling_mixin import SOURCES, Seq2SeqMixin


class TestBagGru(Seq2SeqMixin):
    config_class = BagGruConfig
    base_class = BagGruModel
    model_class = BagGruForConditionalGeneration
    opt_outs = {
        "gradient_checkpointing": "a single GRU keeps little that could be made anew",
        "encoder_states_of_every_word": "the encoder makes one state of all words",
        "separate_embeddings": "source and target always share one table of words",
        "export": "a loop over words is written out for one length",
    }

    def small_config(self, **overrides):
        return BagGruConfig(**{"vocab_size": 10, "hidden_size": 8, **overrides})

    def test_the_order_of_the_source_s_words_changes_nothing(self):
        model, target = self.small_model(), torch.tensor([[6, 5, 2]])
        logits, backward = (
            model(torch.tensor([words]), labels=target).logits for words in (SOURCES[0], SOURCES[0][::-1])
        )
        torch.testing.assert_close(logits, backward)
        assert not torch.allclose(logits, model(torch.tensor([SOURCES[1]]), labels=target).logits)
