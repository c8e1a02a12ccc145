from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from hf_paraphrase.models.fset.configuration_fset import FsetConfig
from hf_paraphrase.models.fset.modeling_fset import FsetForConditionalGeneration, FsetModel

from . import naive_fset
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin, pad

# A retrieved pair for each of the mixin's sources: p and q longer, shorter and as long as x and as each other.
# Their words are in the smallest vocabulary too.
RETRIEVED_SOURCES = [[4, 3, 5, 2], [3, 4, 5, 5, 3, 4, 2], [5, 2]]
RETRIEVED_TARGETS = [[5, 4, 4, 5, 3, 2], [3, 2], [4, 2]]


class TestFset(Seq2SeqMixin):
    config_class = FsetConfig
    base_class = FsetModel
    model_class = FsetForConditionalGeneration
    variants = {
        "default": {},
        "no edit vector": {"use_edit_vector": False},
        "no micro edits": {"use_micro_edits": False},
        "untied": {"tie_word_embeddings": False, "edit_vector_size": 3, "intermediate_size": 5},
    }
    opt_outs = {
        "inputs_embeds": "the edits are read off words",
        "separate_embeddings": "source, target and retrieved pair have one table of words",
    }

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "hidden_size": 8, "num_layers": 2, "num_heads": 4, "provider_layers": 2}
        return FsetConfig(**{**sizes, "provider_heads": 2, "micro_edit_size": 6, "edit_vector_size": 8, **overrides})

    def small_model(self, variant: str = "default", **overrides):
        model = super().small_model(variant, **overrides)
        # Normalisations of random gain would let through little of what came before the last of them.
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                torch.nn.init.uniform_(module.weight, 0.8, 1.2)
        return model

    def further_inputs(self, rows: Sequence[int], side: str = "right") -> dict[str, torch.Tensor]:
        padded = {}
        for name, texts in (("source", RETRIEVED_SOURCES), ("target", RETRIEVED_TARGETS)):
            texts = [texts[row] for row in rows]
            padded[f"retrieved_{name}_ids"] = pad(texts, side, 0)
            padded[f"retrieved_{name}_mask"] = pad([[1] * len(text) for text in texts], side, 0)
        return padded

    @pytest.mark.parametrize("row", range(len(SOURCES)))
    def test_equals_the_paper_s_equations(self, variant, row):
        model, inputs = self.small_model(variant).double(), [1, *TARGETS[row][:-1]]
        pair = RETRIEVED_SOURCES[row], RETRIEVED_TARGETS[row]
        expected, weights = naive_fset.fset(model, SOURCES[row], *pair, inputs)
        outputs = model(
            torch.tensor([SOURCES[row]]),
            retrieved_source_ids=torch.tensor([pair[0]]),
            retrieved_target_ids=torch.tensor([pair[1]]),
            decoder_input_ids=torch.tensor([inputs]),
            output_attentions=True,
        )
        torch.testing.assert_close(outputs.logits[0], expected, rtol=0, atol=1e-9)
        maps = outputs.retrieved_attentions if model.config.use_micro_edits else outputs.cross_attentions
        torch.testing.assert_close(maps[-1][0], weights, rtol=0, atol=1e-9)

    def test_edits_equal_the_paper_s_equations(self, variant):
        model = self.small_model(variant).double()
        batch = self.batch("left")
        outputs = model(**batch, output_edits=True)
        for row, (p, q) in enumerate(zip(RETRIEVED_SOURCES, RETRIEVED_TARGETS, strict=True)):
            vector, micro, _ = naive_fset.edits(model, p, q)
            got = outputs.micro_edit_vectors[row, batch["retrieved_source_mask"][row].bool()]
            torch.testing.assert_close(got, torch.stack(micro), rtol=0, atol=1e-9)
            if model.config.use_edit_vector:
                torch.testing.assert_close(outputs.edit_vector[row], vector, rtol=0, atol=1e-9)
        assert (outputs.edit_vector is not None) == model.config.use_edit_vector

    def test_nothing_but_z_is_computed_from_q_to_p(self):
        model, batch, widths = self.small_model(), self.batch(), []
        last = model.model.encoder.edit_provider.edit_encoder[-1].feed_forward
        last.register_forward_hook(lambda module, inputs, outputs: widths.append(outputs.shape[:2]))
        model(**batch)
        rows = len(batch["input_ids"])
        # Both directions have the width of the longer side, and [AGR].
        length = max(batch[f"retrieved_{side}_ids"].shape[1] for side in ("source", "target"))
        assert widths == [(rows, length + 1), (rows, 1)]

    def test_edits_only_on_request(self):
        outputs = self.small_model()(**self.batch())
        assert outputs.edit_vector is None and outputs.micro_edit_vectors is None
        assert outputs.retrieved_attentions is None

    def test_attention_over_p_leaves_padding_out(self):
        model, batch = self.small_model(), self.batch()
        weights = model(**batch, output_attentions=True).retrieved_attentions
        assert len(weights) == model.config.num_layers
        torch.testing.assert_close(weights[-1].sum(-1), torch.ones(3, 4, batch["labels"].shape[1]))
        assert not weights[-1][2, :, :, len(RETRIEVED_SOURCES[2]) :].any()

    def test_both_implementations_of_attention_agree(self, variant):
        model, batch = self.small_model(variant), self.batch()
        assert model.config._attn_implementation == "sdpa"
        fast = model(**batch).logits
        model.set_attn_implementation("eager")
        torch.testing.assert_close(model(**batch).logits, fast)

    def test_the_pair_decides(self, variant):
        model, batch = self.small_model(variant), self.batch()
        before = model(**batch).logits
        for name in ("retrieved_source_ids", "retrieved_target_ids"):
            changed = dict(batch, **{name: batch[name].where(batch[name] != 5, 3)})
            after = model(**changed).logits
            assert (after - before)[0].abs().max() > 1e-3, name

    def test_encoder_and_projections_run_once_a_sequence(self):
        model, calls = self.small_model(), {"provider": 0, "key of p": 0, "key of y": 0}
        modules = {
            "provider": model.model.encoder.edit_provider,
            "key of p": model.model.decoder.layers[0].memory_attentions[1].key,
            "key of y": model.model.decoder.layers[0].self_attention.key,
        }
        for name, module in modules.items():
            module.register_forward_hook(lambda *_, name=name: calls.update({name: calls[name] + 1}))
        model.generate(**self.alone(0), num_beams=3, min_new_tokens=5, max_new_tokens=5)
        assert calls == {"provider": 1, "key of p": 1, "key of y": 5}


@pytest.mark.parametrize(
    ("options", "removed"),
    [
        # [AGR] of 64, z of 80 x 64, and the map of 128 to 64 in front of the decoder.
        ({"use_edit_vector": False}, 64 + 80 * 64 + 128 * 64),
        # In six layers: queries and outputs of 64 x 64, keys of 64 x 64, values of 40 x 64, biases, and a norm.
        ({"use_micro_edits": False}, 6 * (3 * 64 * 64 + 40 * 64 + 4 * 64 + 2 * 64)),
    ],
)
def test_ablations_remove_parameters(options, removed):
    whole, ablated = (FsetForConditionalGeneration(FsetConfig(**part)).num_parameters() for part in ({}, options))
    assert whole == 1_786_728
    assert whole - ablated == removed


@pytest.mark.parametrize("std", [0.02, 0.05])
def test_weights_start_with_their_deviations(std):
    torch.manual_seed(0)
    model = FsetForConditionalGeneration(FsetConfig(initializer_range=std))
    assert model.get_input_embeddings().weight.std().item() == pytest.approx(64**-0.5, rel=0.01)
    assert 0.7 < model.model.encoder.edit_provider.aggregate.std().item() < 1.3
    assert model.model.decoder.layers[0].feed_forward[0].weight.std().item() == pytest.approx(std, rel=0.05)


def test_what_stands_between_layers_keeps_its_scale_at_first():
    """With small matrices throughout, z starts at 0.05 and varies by 0.001, and words enter the decoder at 0.2."""
    torch.manual_seed(0)
    model = FsetForConditionalGeneration(FsetConfig()).eval()
    entering = []
    model.model.decoder.join.register_forward_hook(lambda module, inputs, output: entering.append(output))
    ids, p, q, labels = torch.randint(4, 8000, (4, 32, 12))
    output = model(ids, retrieved_source_ids=p, retrieved_target_ids=q, labels=labels, output_edits=True)
    parts = {"z": output.edit_vector, "M": output.micro_edit_vectors, "decoder": entering[0]}
    for name, part in parts.items():
        assert 0.4 < part.square().mean().sqrt().item() < 1.5, name
    assert output.edit_vector.std(dim=0).mean() > 0.01


def test_words_of_a_sentence_can_be_told_apart_at_first():
    """Matrices that keep the variance of what they map make all of them look alike: 0.97."""
    torch.manual_seed(0)
    model = FsetForConditionalGeneration(FsetConfig()).eval()
    ids, p, q = torch.randint(4, 8000, (3, 32, 12))
    states = model.model.encoder(ids, retrieved_source_ids=p, retrieved_target_ids=q).last_hidden_state
    likeness = torch.nn.functional.cosine_similarity(states[:, 0], states[:, 5], dim=-1)
    assert likeness.mean() < 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "`dropout` must be in"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"num_heads": 5}, r"`num_heads` \(5\) must divide `hidden_size` \(64\)"),
        ({"provider_heads": 3}, "`provider_heads`"),
        ({"hidden_size": 63, "num_heads": 7, "provider_heads": 3}, "must be even"),
        ({"use_edit_vector": False, "use_micro_edits": False}, "plain Transformer"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        FsetConfig(**options)


def test_missing_inputs_are_named():
    model = FsetForConditionalGeneration(TestFset().small_config())
    ids = torch.tensor([[3, 2]])
    with pytest.raises(ValueError, match="`retrieved_source_ids` is missing"):
        model.generate(ids, max_new_tokens=2)
    with pytest.raises(ValueError, match="`retrieved_target_ids` is missing"):
        model(ids, retrieved_source_ids=ids, labels=ids)
    with pytest.raises(ValueError, match="1 sources have 2 retrieved sources and 1 targets"):
        model(ids, retrieved_source_ids=ids.expand(2, -1), retrieved_target_ids=ids, labels=ids)
    with pytest.raises(ValueError, match="pass `decoder_input_ids`"):
        model(ids, retrieved_source_ids=ids, retrieved_target_ids=ids)
    with pytest.raises(ValueError, match="it carries the edits"):
        model(encoder_outputs=BaseModelOutput(torch.zeros(1, 2, 8)), decoder_input_ids=ids)
    with pytest.raises(ValueError, match="`retrieved_source_ids` holds the id 10"):
        model(ids, retrieved_source_ids=ids + 7, retrieved_target_ids=ids, labels=ids)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_layers_are_captured_without_those_of_the_edit_provider(attention):
    mixin = TestFset()
    model, batch = mixin.small_model(), mixin.batch("left")
    model.set_attn_implementation(attention)
    kept = []
    for stack in (model.model.encoder.layers, model.model.decoder.layers):
        stack[0].register_forward_pre_hook(lambda layer, args: kept.append(args[0]))
        for layer in stack:
            layer.register_forward_hook(lambda layer, args, output: kept.append(output))
    outputs = model(**batch, output_hidden_states=True, output_attentions=True)
    states = outputs.encoder_hidden_states + outputs.decoder_hidden_states
    assert len(states) == len(kept) == 6 and all(map(torch.equal, states, kept))
    # The decoder sees nothing at padding; the layers' own output is what was captured.
    padding = batch["attention_mask"] == 0
    assert not outputs.encoder_last_hidden_state[padding].any()
    assert outputs.encoder_hidden_states[-1][padding].any()
    lengths = [batch[name].shape[1] for name in ("input_ids", "labels", "retrieved_source_ids")]
    source, target, retrieved = lengths
    for name, shape in {
        "encoder_attentions": (source, source),
        "decoder_attentions": (target, target),
        "cross_attentions": (target, source),
        "retrieved_attentions": (target, retrieved),
    }.items():
        weights = getattr(outputs, name)
        assert [tuple(layer.shape) for layer in weights] == [(3, 4, *shape)] * 2
        torch.testing.assert_close(torch.stack(weights).sum(-1), torch.ones(2, 3, 4, shape[0]))


def test_capture_can_be_asked_for_as_in_transformers_own_models():
    mixin = TestFset()
    model, batch = mixin.small_model(), mixin.batch()
    everything = model(**batch, output_hidden_states=True)
    some = model(**batch, output_hidden_states=[1])
    assert [states is None for states in some.decoder_hidden_states] == [True, False, True]
    assert torch.equal(some.decoder_hidden_states[1], everything.decoder_hidden_states[1])
    model.config.output_hidden_states = True
    assert len(model(**batch).encoder_hidden_states) == 3
    assert model(**batch, output_hidden_states=False).encoder_hidden_states is None
