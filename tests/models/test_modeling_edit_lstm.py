from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from hf_paraphrase.models.edit_lstm.configuration_edit_lstm import EditLstmConfig
from hf_paraphrase.models.edit_lstm.modeling_edit_lstm import (
    EditLstmForConditionalGeneration,
    EditLstmModel,
    find_words_missing_from,
)

from . import naive_edit_lstm
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin, pad, words_of

# A retrieved pair for each of the mixin's sources, with words that come twice or stand on both sides, all of them in
# the smallest vocabulary too.
RETRIEVED_SOURCES = [[4, 3, 5, 2], [3, 4, 5, 5, 3, 4, 2], [5, 2]]
RETRIEVED_TARGETS = [[5, 4, 4, 5, 2], [3, 2], [4, 4, 2]]
# Pairs and targets with words outside a vocabulary of 10, numbered in each pair anew.
OUTSIDE_SOURCES = [[4, 10, 5, 11, 2], [3, 4, 2], [10, 2]]
OUTSIDE_TARGETS = [[10, 4, 12, 10, 2], [10, 3, 2], [4, 10, 2]]
OUTSIDE_LABELS = [[12, 6, 10, 2], [10, 9, 2], [2]]


class TestEditLstm(Seq2SeqMixin):
    opt_outs = {"inputs_embeds": "words are compared with those of the retrieved pair"}
    config_class = EditLstmConfig
    base_class = EditLstmModel
    model_class = EditLstmForConditionalGeneration
    variants = {
        "default": {},
        "everything": {
            "attention": "additive",
            "share_embeddings": False,
            "embedding_size": 5,
            "edit_vector_size": 6,
        },
        "copy": {"copy": True, "attention": "additive", "residual_interval": 0, "num_layers": 2},
        "copy, everything": {
            "copy": True,
            "attention": "additive",
            "attention_size": 5,
            "bidirectional_encoder": True,
        },
    }

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "embedding_size": 8, "hidden_size": 8, "num_layers": 4}
        return EditLstmConfig(**{**sizes, **overrides})

    def further_inputs(self, rows: Sequence[int], side: str = "right") -> dict[str, torch.Tensor]:
        return pair_inputs([RETRIEVED_SOURCES[row] for row in rows], [RETRIEVED_TARGETS[row] for row in rows], side)

    @pytest.mark.parametrize("row", range(len(SOURCES)))
    def test_equals_the_equations(self, variant, row):
        model, inputs = self.small_model(variant).double(), [1, *TARGETS[row][:-1]]
        pair = RETRIEVED_SOURCES[row], RETRIEVED_TARGETS[row]
        expected = naive_edit_lstm.edit_lstm(model, SOURCES[row], *pair, inputs)
        outputs = model(
            torch.tensor([SOURCES[row]]),
            retrieved_source_ids=torch.tensor([pair[0]]),
            retrieved_target_ids=torch.tensor([pair[1]]),
            decoder_input_ids=torch.tensor([inputs]),
        )
        torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-9)
        if not model.config.copy:
            torch.testing.assert_close(outputs.edit_vector[0], naive_edit_lstm.edit_vector(model, *pair))

    def test_the_pair_decides(self, variant):
        model, batch = self.small_model(variant), self.batch()
        before = model(**batch).logits
        for name, new in (("retrieved_source_ids", 6), ("retrieved_target_ids", 7)):
            changed = dict(batch, **{name: batch[name].where(batch[name] != 5, new)})
            after = model(**changed).logits
            assert (after - before)[0].abs().max() > 1e-3, name

    def test_pairs_are_read_once_a_sequence(self, variant):
        model, calls = self.small_model(variant), []
        model.model.encoder.register_forward_hook(lambda *_: calls.append("encoder"))
        for module in model.modules():
            if module is getattr(model.model.decoder.copy, "pointers", [None])[0]:
                module.key.register_forward_hook(lambda *_: calls.append("key"))
        model.generate(**self.alone(0), num_beams=3, min_new_tokens=5, max_new_tokens=5)
        assert calls == (["encoder", "key"] if model.config.copy else ["encoder"])


def pair_inputs(sources: list[list[int]], targets: list[list[int]], side: str = "right") -> dict[str, torch.Tensor]:
    padded = {}
    for name, texts in (("source", sources), ("target", targets)):
        padded[f"retrieved_{name}_ids"] = pad(texts, side, 0)
        padded[f"retrieved_{name}_mask"] = pad([[1] * len(text) for text in texts], side, 0)
    return padded


def copy_editor(**overrides) -> EditLstmForConditionalGeneration:
    torch.manual_seed(0)
    return TestEditLstm().small_model("copy", **overrides)


def outside_batch(side: str = "right") -> dict[str, torch.Tensor]:
    return {
        "input_ids": pad(SOURCES, side, 0),
        "attention_mask": pad([[1] * len(row) for row in SOURCES], side, 0),
        **pair_inputs(OUTSIDE_SOURCES, OUTSIDE_TARGETS, side),
    }


def test_words_are_found_each_once():
    p, q = torch.tensor([[4, 5, 5, 6, 7], [4, 4, 5, 0, 0]]), torch.tensor([[7, 8, 8, 4], [4, 6, 6, 6]])
    p_words, q_words = p > 0, torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1]]).bool()
    assert find_words_missing_from(p, p_words, q, q_words).int().tolist() == [[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert find_words_missing_from(q, q_words, p, p_words).int().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


def test_marks_and_padding_are_no_words():
    model = TestEditLstm().small_model(eos_token_id=[2, 9])
    vectors = [
        model(
            torch.tensor([[5, 2]]), labels=torch.tensor([[2]]), **pair_inputs([[4, 5, *end]], [[1, 5, 6]])
        ).edit_vector
        for end in ([2], [9], [2, 9, 2])
    ]
    assert torch.equal(vectors[0], vectors[1]) and torch.equal(vectors[0], vectors[2])
    same = model(torch.tensor([[5, 2]]), labels=torch.tensor([[2]]), **pair_inputs([[4, 5, 2]], [[5, 4, 4]]))
    assert not same.edit_vector.any()


@pytest.mark.parametrize("side", ["right", "left", "between"])
def test_words_outside_the_vocabulary_are_copied(side):
    model = copy_editor().double()
    outputs = model(**outside_batch(side), labels=pad(OUTSIDE_LABELS, "right", -100))
    assert outputs.logits.shape == (3, 5, 13)
    likelihood = 0
    for row, labels in enumerate(OUTSIDE_LABELS):
        pair = OUTSIDE_SOURCES[row], OUTSIDE_TARGETS[row]
        expected = naive_edit_lstm.edit_lstm(model, SOURCES[row], *pair, [1, *labels[:-1]])
        got = outputs.logits[row, : len(labels)]
        torch.testing.assert_close(got[:, : expected.shape[1]], expected, rtol=0, atol=1e-9)
        assert not got[:, expected.shape[1] :].exp().any()
        torch.testing.assert_close(got.exp().sum(-1), torch.ones(len(labels)).double())
        likelihood -= expected[range(len(labels)), labels].sum()
    torch.testing.assert_close(outputs.loss, likelihood / sum(map(len, OUTSIDE_LABELS)), rtol=0, atol=1e-9)


def test_gradients_of_the_mixture_are_those_of_the_equations():
    model, row = copy_editor().double(), 0
    batch = {name: tensor[row : row + 1] for name, tensor in outside_batch().items()}
    labels, gradients = OUTSIDE_LABELS[row], []
    losses = (
        lambda: model(**batch, labels=torch.tensor([labels])).loss * len(labels),
        lambda: (
            -naive_edit_lstm.edit_lstm(
                model, SOURCES[row], OUTSIDE_SOURCES[row], OUTSIDE_TARGETS[row], [1, *labels[:-1]]
            )[range(len(labels)), labels].sum()
        ),
    )
    for loss in losses:
        model.zero_grad()
        loss().backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=0, atol=1e-5, msg=name)


@pytest.mark.parametrize("options", [{}, {"num_beams": 4}, {"do_sample": True, "top_k": 0, "num_return_sequences": 5}])
def test_generation_copies_outside_words_of_the_own_pair_only(options):
    model, batch = copy_editor(), outside_batch("left")
    # Copying, not generating.
    model.model.decoder.copy.gate.bias.data[0] = -9.0
    got = model.generate(**batch, **options, max_new_tokens=8, min_new_tokens=4)
    returned = len(got) // len(SOURCES)
    outside = set()
    for row, words in enumerate(words_of(got)):
        allowed = {*range(10), *OUTSIDE_SOURCES[row // returned], *OUTSIDE_TARGETS[row // returned]}
        assert set(words) <= allowed
        outside |= {word for word in words if word >= 10}
    assert outside
    if "do_sample" not in options:
        for row in range(len(SOURCES)):
            alone = {name: tensor[row : row + 1] for name, tensor in outside_batch().items()}
            expected = model.generate(**alone, **options, max_new_tokens=8, min_new_tokens=4)
            assert words_of(got[row : row + 1]) == words_of(expected)


def test_ids_that_no_pair_can_have_are_refused():
    model, batch = copy_editor(), outside_batch()
    with pytest.raises(ValueError, match="holds the id 40; words outside the vocabulary of 10 are numbered"):
        model(
            **batch | {"retrieved_source_ids": batch["retrieved_source_ids"].clamp(max=9) + 31},
            labels=batch["input_ids"],
        )
    with pytest.raises(ValueError, match="`decoder_input_ids` holds the id 13"):
        model(**batch, decoder_input_ids=torch.tensor([[1, 13]] * 3))
    with pytest.raises(ValueError, match="`input_ids` holds the id 10"):
        model(**batch | {"input_ids": torch.tensor([[10]] * 3), "attention_mask": None}, labels=batch["input_ids"])


@pytest.mark.parametrize(
    ("options", "removed"),
    [
        # With 16 units: the edit vector's map of 16 to 4, and 8 more inputs of the first decoder layer's four gates.
        ({"copy": True, "attention": "additive"}, 16 * 4 + 8 * 4 * 16),
        # Nothing of the copy mechanism: two pointers, a gate of three, and the map of three states to one.
        ({"attention": "additive"}, 2 * (2 * 16 * 16 + 16 + 16) + 3 * 48 + 3 + 48 * 16),
    ],
)
def test_each_editor_has_its_own_parameters_only(options, removed):
    names = "edit_vector", "decoder.copy"
    sizes = {"vocab_size": 10, "embedding_size": 16, "hidden_size": 16}
    model = EditLstmForConditionalGeneration(EditLstmConfig(**sizes, **options))
    absent = names[0] if model.config.copy else names[1]
    assert not [name for name, _ in model.named_parameters() if absent in name]
    flipped = EditLstmForConditionalGeneration(
        EditLstmConfig(**sizes, **options | {"copy": not model.config.copy, "attention": "additive"})
    )
    own = flipped.model.encoder.edit_vector if model.config.copy else flipped.model.decoder.copy
    inputs = 4 * 16 * 8 if model.config.copy else 0
    assert sum(parameter.numel() for parameter in own.parameters()) + inputs == removed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edit_vector_size": 5}, "it must be even, not 5"),
        ({"copy": True}, "needs `attention='additive'`"),
        ({"copy": True, "attention": "additive", "unk_token_id": None}, "`unk_token_id`, which is missing"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        EditLstmConfig(**options)


def test_missing_inputs_are_named():
    model = EditLstmForConditionalGeneration(TestEditLstm().small_config())
    ids = torch.tensor([[3, 2]])
    with pytest.raises(ValueError, match="`retrieved_source_ids` is missing"):
        model.generate(ids, max_new_tokens=2)
    with pytest.raises(ValueError, match="1 sources have 2 retrieved sources and 1 targets"):
        model(ids, retrieved_source_ids=ids.expand(2, -1), retrieved_target_ids=ids, labels=ids)
    with pytest.raises(ValueError, match="pass `decoder_input_ids`"):
        model(ids, retrieved_source_ids=ids, retrieved_target_ids=ids)
    with pytest.raises(ValueError, match="it carries the pair"):
        model(encoder_outputs=BaseModelOutput(torch.zeros(1, 2, 8)), decoder_input_ids=ids)
