from __future__ import annotations

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from hf_paraphrase.models.hierarchical_lm.configuration_hierarchical_lm import HierarchicalLmConfig
from hf_paraphrase.models.hierarchical_lm.modeling_hierarchical_lm import (
    HierarchicalLmForConditionalGeneration,
    HierarchicalLmModel,
)
from hf_paraphrase.models.search.embedding_paraphraser import perturb

from . import naive_hierarchical_lm as naive
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin

# STOP is 4: words of one, several and no characters, and one that END closes.
STREAMS = [([5, 6, 4, 7, 4, 2], [6, 4, 5, 7, 8, 4, 4, 9, 4, 2]), ([9, 4, 7, 8, 9, 5, 6, 7, 2], [9, 8, 2]), ([2], [2])]


class TestHierarchicalLm(Seq2SeqMixin):
    opt_outs = {
        "export": "words are found by their marks, so that their number depends on the characters",
        "inputs_embeds": "the marks of words are characters",
        "separate_embeddings": "source and target always share one table of symbols",
        "tied_embeddings": "the output layer is never tied to the table of symbols",
    }
    config_class = HierarchicalLmConfig
    base_class = HierarchicalLmModel
    model_class = HierarchicalLmForConditionalGeneration
    variants = {
        "default": {},
        "heads": {"num_heads": 2, "word_encoder_sizes": (9, 16)},
        "gru": {"sentence_encoder": "gru"},
        "transformer": {"sentence_encoder": "transformer", "num_heads": 2, "max_words": 3},
        "mlp": {"word_decoder": "mlp", "sentence_encoder": "gru", "num_layers": 1},
        "wdn": {"word_decoder": "mlp", "sentence_projection": True, "output_projection": True},
    }

    def small_config(self, **overrides):
        sizes = {
            "vocab_size": 10,
            "embedding_size": 3,
            "max_characters": 20,
            "word_encoder_sizes": (9, 8),
            "value_size": 6,
            "key_size": 4,
            "word_decoder_hidden_size": 5,
            "word_decoder_sizes": (7, 5),
        }
        return HierarchicalLmConfig(**{**sizes, **overrides})

    def test_equals_the_thesis_equations(self, variant):
        model = self.small_model(variant, max_characters=3).double()
        for source, target in [*STREAMS, *zip(SOURCES, TARGETS, strict=True)]:
            decoder_inputs = [1, *target[:-1]]
            expected = naive.hierarchical_lm(model, source, decoder_inputs)
            for use_cache in (False, True):
                outputs = model(
                    input_ids=torch.tensor([source]),
                    decoder_input_ids=torch.tensor([decoder_inputs]),
                    use_cache=use_cache,
                )
                torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-10)

    def test_no_leak_of_the_future(self, variant):
        model = self.small_model(variant)
        source, target = torch.tensor([STREAMS[0][0]]), torch.tensor([[1, *STREAMS[0][1]]])
        before = model(input_ids=source, decoder_input_ids=target).logits
        for place in range(1, target.shape[1]):
            changed = target.clone()
            changed[0, place] = 8 if target[0, place] != 8 else 9
            after = model(input_ids=source, decoder_input_ids=changed).logits
            torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-6)
            assert not torch.allclose(after[:, place], before[:, place])

    def test_the_decoder_sees_sentence_vectors_alone(self, variant):
        model = self.small_model(variant)
        source, target = torch.tensor([STREAMS[0][0]]), torch.tensor([[1, 5, 4, 6]])
        outputs = model.model.encoder(source)
        expected = model(encoder_outputs=outputs, decoder_input_ids=target).logits
        outputs.last_hidden_state = torch.full_like(outputs.last_hidden_state, torch.nan)
        assert torch.equal(model(encoder_outputs=outputs, decoder_input_ids=target).logits, expected)
        outputs.sentence_states = outputs.sentence_states + 1
        assert not torch.allclose(model(encoder_outputs=outputs, decoder_input_ids=target).logits, expected)

    def test_words_spelled_alike_are_encoded_once(self, variant):
        model, streams = self.small_model(variant), torch.tensor([[5, 6, 4, 5, 6, 4, 7, 4, 5, 6, 4, 2]])
        seen = []
        model.model.encoder.word_encoder.register_forward_hook(lambda _, inputs, output: seen.append(len(output)))
        model(input_ids=streams, decoder_input_ids=streams)
        assert seen == [3, 3]

    @pytest.mark.parametrize("window", [1, 3, 20])
    def test_a_decode_window_goes_over_the_following_words(self, variant, window):
        model = self.small_model(variant, dropout=0.0, decode_window=window).double().train()
        source, target = STREAMS[0]
        whole = [1, *target]
        losses = []
        sentences = naive.sentence_vectors(model, source)
        for place in [i for i, symbol in enumerate(whole[:-1]) if symbol in naive.marks(model.config)]:
            closed, _ = naive.split_stream(model.config, whole[: place + 1])
            vectors = [naive.word_vector(model, word) for word in closed]
            own = next(i for i in range(place + 1, len(whole)) if whole[i] in naive.marks(model.config)) - place
            spelled = whole[place + 1 : place + 1 + max(window, own)]
            for count, label in enumerate(spelled):
                scores = naive.next_symbol(model, sentences, vectors, spelled[:count])
                losses.append(-scores.log_softmax(-1)[label])
        outputs = model(input_ids=torch.tensor([source]), labels=torch.tensor([target]))
        torch.testing.assert_close(outputs.loss, sum(losses) / len(losses), rtol=0, atol=1e-9)
        plain = model.eval()(input_ids=torch.tensor([source]), labels=torch.tensor([target]))
        torch.testing.assert_close(outputs.logits, plain.logits)

    def test_windows_know_padding(self):
        model = self.small_model(dropout=0.0, decode_window=4).train()
        rows = [model(input_ids=torch.tensor([s]), labels=torch.tensor([t])) for s, t in STREAMS[:2]]
        width = max(len(t) for _, t in STREAMS[:2])
        labels = torch.full((2, width), -100)
        sources, mask = torch.zeros(2, 9, dtype=torch.long), torch.zeros(2, 9)
        for row, (source, target) in enumerate(STREAMS[:2]):
            labels[row, : len(target)] = torch.tensor(target)
            sources[row, : len(source)], mask[row, : len(source)] = torch.tensor(source), 1
        together = model(input_ids=sources, attention_mask=mask, labels=labels)
        low, high = sorted(row.loss.item() for row in rows)
        assert low < together.loss.item() < high

    def test_length_limits(self):
        model = self.small_model(max_characters=2, max_words=3)
        with torch.no_grad():
            # A model that writes nothing but the character 7.
            model.lm_head.bias.fill_(0.0)[7] = 100.0
        for options in ({}, {"num_beams": 3}, {"do_sample": True}):
            ids = model.generate(torch.tensor([SOURCES[0]]), max_new_tokens=40, **options)
            assert ids.tolist() == [[1, 7, 7, 4, 7, 7, 4, 7, 7, 4, 2]]

    def test_more_words_than_there_was_room_for(self, variant):
        model = self.small_model(variant, **({} if variant == "transformer" else {"max_words": 2}))
        ids = torch.tensor([[1, *[5, 4] * 9]])
        with torch.no_grad():
            whole = model(input_ids=ids, decoder_input_ids=ids)
            stepped = model(input_ids=ids, decoder_input_ids=ids, use_cache=True)
        torch.testing.assert_close(stepped.logits, whole.logits, rtol=0, atol=1e-5)

    def test_dropout_reaches_every_part(self, variant):
        model = self.small_model(variant, dropout=0.5).train()
        batch = self.batch()
        assert model(**batch).loss != model(**batch).loss
        model(**batch).loss.backward()


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        # The thesis prints 590,866 for SARAh; W, b and the query's layer have 590,848.
        ({"sentence_encoder": "sarah"}, [590_848, 590_848]),
        ({"sentence_encoder": "gru"}, [1_705_728, 1_705_728]),
        ({"sentence_encoder": "transformer", "num_layers": 3}, [738_048, 1_008_128, 1_008_128]),
    ],
)
@pytest.mark.parametrize(("word_decoder", "spelling"), [("gru", 363_328), ("mlp", 337_472)])
def test_numbers_of_parameters(options, layers, word_decoder, spelling):
    with torch.device("meta"):
        model = HierarchicalLmForConditionalGeneration(HierarchicalLmConfig(word_decoder=word_decoder, **options))
    encoder, decoder = model.model.encoder, model.model.decoder
    characters = count(encoder.embed_tokens)
    assert characters == 306 * 32
    assert characters + count(encoder.word_encoder) == 863_296
    assert [count(*pair) for pair in zip(encoder.layers, encoder.attentions, strict=True)] == layers
    # The decoder is a clone of the encoder without the 196,864 or 131,328 parameters of its attention (section 3.2.3).
    queries = [count(attention) for attention in encoder.attentions]
    expected = [layer - query for layer, query in zip(layers, queries, strict=True)]
    assert [count(layer) for layer in decoder.layers] == expected
    assert characters + count(decoder.word_decoder.speller) == spelling
    # 512, 512 and 256 units, then the 306 symbols (section 3.2.4).
    assert count(decoder.word_decoder.layers, model.lm_head) == 2 * 513 * 512 + 513 * 256 + 257 * 306


def count(*modules: torch.nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def test_noise_is_as_wide_as_the_vector_varies():
    torch.manual_seed(0)
    vectors = torch.randn(2, 3, 20000) * torch.tensor([1.0, 5.0]).view(2, 1, 1)
    noise = perturb(vectors, torch.tensor([0.5, 2.0])) - vectors
    torch.testing.assert_close(
        noise.std(dim=-1), vectors.std(dim=-1) * torch.tensor([[0.5], [2.0]]), rtol=0.03, atol=0
    )
    assert torch.equal(perturb(vectors, 0.0), vectors)


def test_noise_stands_in_training_alone():
    model = TestHierarchicalLm().small_model(dropout=0.0, sentence_noise=1.0)
    batch = TestHierarchicalLm().batch()
    assert torch.equal(model(**batch).loss, model(**batch).loss)
    model.train()
    assert not torch.equal(model(**batch).loss, model(**batch).loss)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "`dropout` must be in"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"num_heads": 3}, "`num_heads` .3. must divide"),
        ({"word_encoder_sizes": (512, 256)}, "the last of `word_encoder_sizes`"),
        ({"word_decoder_sizes": ()}, "`word_decoder_sizes` must name at least one layer"),
        ({"sentence_encoder": "gru", "key_size": 1024, "word_encoder_sizes": (2048,)}, "must not be larger"),
        ({"decode_window": 0}, "`decode_window` must be"),
        ({"sentence_noise": -1.0}, "`sentence_noise` must not be negative"),
        ({"tie_word_embeddings": True}, "never tied"),
        ({"sentence_encoder": "lstm"}, "sentence_encoder"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        HierarchicalLmConfig(**options)


def test_missing_inputs_are_named():
    model = TestHierarchicalLm().small_model()
    with pytest.raises(ValueError, match="`input_ids` or `encoder_outputs`"):
        model(decoder_input_ids=torch.tensor([[1]]))
    with pytest.raises(ValueError, match="`decoder_input_ids`"):
        model(input_ids=torch.tensor([[3]]))
    with pytest.raises(ValueError, match="it has `sentence_states`"):
        model(encoder_outputs=BaseModelOutput(torch.zeros(1, 2, 4)), decoder_input_ids=torch.tensor([[1]]))
