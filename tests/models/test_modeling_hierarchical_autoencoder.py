from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.hierarchical_autoencoder.configuration_hierarchical_autoencoder import (
    HierarchicalAutoencoderConfig,
)
from hf_paraphrase.models.hierarchical_autoencoder.modeling_hierarchical_autoencoder import (
    HierarchicalAutoencoderForConditionalGeneration,
    HierarchicalAutoencoderModel,
)

from . import naive_hierarchical_autoencoder as naive
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin, pad

# Documents of 3, 1, no and 2 sentences; the last has no marks at its end. 4 ends a sentence, 2 a document.
DOCUMENTS = [[5, 6, 4, 7, 4, 8, 9, 5, 4, 2], [6, 7, 4, 2], [2], [9, 4, 8, 7]]


class TestHierarchicalAutoencoder(Seq2SeqMixin):
    opt_outs = {
        "export": "sentences are found by their marks, so that their number depends on the words",
        "inputs_embeds": "the marks of sentences are words",
    }
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

    def attends(self, labels):
        # The first sentence starts at e_D; each end of a sentence that the decoder reads starts one that attends.
        ended = torch.nn.functional.pad(labels == 4, (1, 0))[:, :-1]
        return ended.cummax(dim=1).values

    @pytest.mark.parametrize("reverse_source", [True, False])
    def test_equals_the_paper_s_equations(self, variant, reverse_source):
        options = {} if "reverse_source" in self.variants[variant] else {"reverse_source": reverse_source}
        model = self.small_model(variant, **options).double()
        for source in (*DOCUMENTS, *SOURCES):
            for target in (*DOCUMENTS, *TARGETS):
                inputs = [1, *target[:-1]]
                expected, _ = naive.decode(model, source, inputs)
                outputs = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([inputs]))
                torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_documents_of_several_sizes_share_a_batch(self, variant, side):
        model = self.small_model(variant).double()
        targets = [[1, *document[:-1]] for document in DOCUMENTS]
        mask = pad([[1] * len(target) for target in targets], side, 0)
        outputs = model(
            input_ids=pad(DOCUMENTS, side, 0),
            attention_mask=pad([[1] * len(document) for document in DOCUMENTS], side, 0),
            decoder_input_ids=pad(targets, side, 0),
            decoder_attention_mask=mask,
        )
        for row, (source, target) in enumerate(zip(DOCUMENTS, targets, strict=True)):
            expected, _ = naive.decode(model, source, target)
            torch.testing.assert_close(outputs.logits[row, mask[row].bool()], expected, rtol=0, atol=1e-10)

    def test_document_embeddings_are_where_the_decoder_starts(self, variant):
        model = self.small_model(variant).double()
        embeddings = model.model.document_embeddings(
            pad(DOCUMENTS, "right", 0), pad([[1] * len(document) for document in DOCUMENTS], "right", 0)
        )
        for source, embedding in zip(DOCUMENTS, embeddings, strict=True):
            state, _ = naive.encode(model, source)
            for layer, (h, c) in enumerate(state):
                torch.testing.assert_close(embedding[:, layer], torch.stack((h, c)), rtol=0, atol=1e-10)


def make_model(**options) -> HierarchicalAutoencoderForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"vocab_size": 10, "hidden_size": 8, "num_layers": 2}
    model = HierarchicalAutoencoderForConditionalGeneration(HierarchicalAutoencoderConfig(**sizes, **options)).eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return model


def test_attention_looks_at_every_sentence_of_the_source_in_decoding_as_in_training():
    """The published code looks at the last source sentence alone when it decodes."""
    model, source = make_model(attention=True, max_length_factor=None).double(), DOCUMENTS[0]
    target = [1, 5, 4, 8, 8, 4, 4, 9]
    _, expected = naive.decode(model, source, target)
    ends = [place for place, word in enumerate(source) if word == 4]
    inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
    whole = model(**inputs, output_attentions=True).cross_attentions[0][0, 0]
    torch.testing.assert_close(whole[:, ends], expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(whole[2:, ends].sum(1), torch.ones(len(target) - 2).double())
    assert (whole[2:, ends] > 0.01).all() and not whole[:2].any()

    generated = model.generate(
        inputs["input_ids"],
        prefix_allowed_tokens_fn=lambda row, ids: [target[len(ids)]],
        max_new_tokens=len(target) - 1,
        output_attentions=True,
        return_dict_in_generate=True,
    )
    assert generated.sequences[0].tolist() == target
    steps = torch.cat([step[0][0, 0] for step in generated.cross_attentions])
    torch.testing.assert_close(steps, whole[:-1])


def test_sentences_without_hierarchy_are_words_like_others():
    model = make_model(hierarchy="none")
    assert model.model.encoder.sentences is None and model.model.decoder.sentences is None
    first, second = (
        model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[1]])).logits
        for ids in ([5, 4, 6, 4, 2], [5, 6, 4, 4, 2])
    )
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}])
@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_outputs_have_a_share_of_the_source_s_words(options, factor):
    model = make_model(max_length_factor=factor)
    model.lm_head.bias.data[[2, 4]] = -20.0
    inputs = {
        "input_ids": pad(DOCUMENTS, "left", 0),
        "attention_mask": pad([[1] * len(document) for document in DOCUMENTS], "left", 0),
    }
    outputs = model.generate(**inputs, **options)
    copies = len(outputs) // len(DOCUMENTS)
    for row, ids in enumerate(outputs[:, 1:].tolist()):
        source = DOCUMENTS[row // copies]
        limit = int(factor * sum(word not in (2, 4) for word in source))
        written = [word for word in ids if word not in (0, 1, 2, 4)]
        # Start and padding may be drawn too, and count as no words.
        assert len(written) <= limit
        if 2 in ids and limit:
            assert ids[ids.index(2) - 1] == 4


def test_a_length_in_the_call_and_no_factor_are_obeyed():
    model, source = make_model(), torch.tensor([DOCUMENTS[0]])
    model.lm_head.bias.data[[0, 1, 2, 4]] = -20.0
    assert model.generate(source, max_new_tokens=3).shape[1] == 4
    assert model.generate(source, max_length_factor=None, max_new_tokens=30).shape[1] == 31
    # Six words: nine are written, then the sentence and the document are closed.
    assert model.generate(source)[0, -2:].tolist() == [4, 2] and model.generate(source).shape[1] == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"dropout": 1.0}, "`dropout` must be in"),
        ({"hierarchy": "none", "attention": True}, "needs `hierarchy='sentence'`"),
        ({"hierarchy": "paragraph"}, "hierarchy"),
        ({"cell_output": "relu"}, "cell_output"),
        ({"max_length_factor": 0}, "`max_length_factor` must be greater than 0"),
        ({"end_of_sentence_token_id": 2}, "give two ids"),
        ({"end_of_sentence_token_id": 30000}, "must be in the vocabulary"),
        ({"eos_token_id": [2, 3]}, "must be the one id"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        HierarchicalAutoencoderConfig(**options)


def test_missing_inputs_are_named():
    model = make_model()
    with pytest.raises(ValueError, match="`input_ids` or `encoder_outputs`"):
        model(decoder_input_ids=torch.tensor([[1]]))
    with pytest.raises(ValueError, match="`decoder_input_ids`"):
        model(input_ids=torch.tensor([[3]]))


def test_the_other_name_of_the_document_s_end():
    assert HierarchicalAutoencoderConfig(end_of_document_token_id=7).eos_token_id == 7


def test_numbers_of_parameters():
    """Four LSTMs of 4 layers of 1,000 units (8,008,000 weights each), a table of words, and the output layer."""
    counts = {}
    for name, options in (("none", {"hierarchy": "none"}), ("sentence", {}), ("attention", {"attention": True})):
        with torch.device("meta"):
            model = HierarchicalAutoencoderForConditionalGeneration(HierarchicalAutoencoderConfig(**options))
        counts[name] = model.num_parameters()
    words, stack = 2 * 25_000 * 1000 + 25_000, 4 * 8_008_000
    # W1 with a bias, W2 and U; W of 4K x 3K.
    attention = 2 * 1000**2 + 2 * 1000 + 4 * 1000**2
    assert counts == {
        "none": words + 2 * stack,
        "sentence": words + 4 * stack,
        "attention": words + 4 * stack + attention,
    }
