from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.configuration_hierarchical_autoencoder import HierarchicalAutoencoderConfig
from hf_paraphrase.models.modeling_hierarchical_autoencoder import (
    HierarchicalAutoencoderForConditionalGeneration,
    HierarchicalAutoencoderModel,
)

from . import naive_hierarchical_autoencoder as naive
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin

# Documents of 3, 1, no and 2 sentences; the last has no marks at its end. 4 ends a sentence, 2 a document.
DOCUMENTS = [[5, 6, 4, 7, 4, 8, 9, 5, 4, 2], [6, 7, 4, 2], [2], [9, 4, 8, 7]]


class TestHierarchicalAutoencoder(Seq2SeqMixin):
    config_class = HierarchicalAutoencoderConfig
    base_class = HierarchicalAutoencoderModel
    model_class = HierarchicalAutoencoderForConditionalGeneration
    variants = {
        "default": {},
        "standard": {"hierarchy": "none"},
        "attention": {"attention": True},
        "identity": {"attention": True, "cell_output": "identity", "reverse_source": False, "share_embeddings": False},
    }

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "hidden_size": 8, "num_layers": 2, "max_length_factor": None}
        return HierarchicalAutoencoderConfig(**{**sizes, **overrides})

    @pytest.mark.parametrize("reverse_source", [True, False])
    def test_equals_the_paper_s_equations(self, variant, reverse_source):
        model = self.small_model(
            variant, **{} if variant == "identity" else {"reverse_source": reverse_source}
        ).double()
        for source in (*DOCUMENTS, *SOURCES):
            for target in (*DOCUMENTS, *TARGETS):
                inputs = [1, *target[:-1]]
                expected, _ = naive.decode(model, source, inputs)
                outputs = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([inputs]))
                torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-10)
