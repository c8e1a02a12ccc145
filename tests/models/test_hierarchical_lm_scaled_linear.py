from __future__ import annotations

import json

import pytest
import torch

from hf_paraphrase import HierarchicalLmTokenizer
from hf_paraphrase.models.configuration_hierarchical_lm import HierarchicalLmConfig
from hf_paraphrase.models.hierarchical_lm_scaled_linear import ScaledLinear
from hf_paraphrase.models.hierarchical_lm_sentence_layers import SentenceAttention, make_layer
from hf_paraphrase.models.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration
from hf_paraphrase.training.recipe import list_recipes, load_recipe

RECIPES = {name: load_recipe(folder).model_config for name, folder in list_recipes().items()}
RECIPES = {name: config for name, config in RECIPES.items() if config["model_type"] == "hierarchical_lm"}
# The deep recipe has ten layers of SARAh; the others are to learn as deep.
for kind in ("gru", "transformer"):
    RECIPES[f"deep {kind}"] = RECIPES["deep-lm-books"] | {"sentence_encoder": kind}
RECIPES["deep mlp"] = RECIPES["deep-lm-books"] | {"word_decoder": "mlp"}

TEXTS = [
    "It was a fine morning, and the captain walked slowly along the quay.",
    "Nothing is easier than to admit in words the truth of the universal struggle for life.",
    '"I never saw such a man," said the mate; "he won\'t listen to anybody."',
    "Rain.",
    "She looked up from her sewing, sighed, and asked him what he had done with the money.",
    "The many slight differences which appear in the offspring from the same parents are individual differences.",
    "After a long silence the old man shook his head.",
    "He went below at once.",
]


def narrow_model(config: dict, width: int = 96) -> HierarchicalLmForConditionalGeneration:
    """A new model of a recipe's depth, without what is random in training."""
    stacks = {
        name: [min(size, width) for size in config[name]] for name in ("word_encoder_sizes", "word_decoder_sizes")
    }
    sizes = {"value_size": width, "key_size": width // 2, "word_decoder_hidden_size": width // 2}
    quiet = {"dropout": 0.0, "sentence_noise": 0.0}
    return HierarchicalLmForConditionalGeneration(HierarchicalLmConfig(**config | stacks | sizes | quiet)).train()


def make_batch() -> dict[str, torch.Tensor]:
    inputs = HierarchicalLmTokenizer()(TEXTS, padding=True, return_tensors="pt")
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    return {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"], "labels": labels.roll(1, 0)}


def rms(x: torch.Tensor) -> float:
    return x.square().mean().sqrt().item()


@pytest.mark.parametrize("name", RECIPES)
def test_neither_vectors_nor_gradients_vanish_or_explode(name):
    torch.manual_seed(0)
    model, batch, decoded = narrow_model(RECIPES[name]), make_batch(), []
    for layer in model.model.decoder.layers:
        layer.register_forward_hook(lambda _, inputs, output: decoded.append(output[:, : model.config.value_size]))
    vectors = model.model.encoder(batch["input_ids"], batch["attention_mask"]).sentence_states
    model(**batch).loss.backward()
    assert len(decoded) == vectors.shape[1] == model.config.num_layers
    for vector in vectors.unbind(1):
        assert 0.1 < rms(vector) < 1.5
        # It tells sentences apart.
        assert rms(vector - vector.mean(dim=0)) > 0.2 * rms(vector)
    assert all(0.2 < rms(values) < 2 for values in decoded)
    gradients = {name: rms(parameter.grad) for name, parameter in model.named_parameters()}
    # Adam divides by the size of the gradient plus 1e-8.
    assert min(gradients.values()) > 1e-6 and max(gradients.values()) < 1, gradients


def test_outputs_vary_as_much_as_inputs_and_means_stay_out():
    torch.manual_seed(0)
    layers = [ScaledLinear(1024, 1024) for _ in range(10)]
    first = x = torch.randn(16, 1024)
    for layer in layers:
        layer.weight.data = layer.initial_weight()
        torch.testing.assert_close(layer.weight.sum(dim=1), torch.zeros(1024), rtol=0, atol=1e-4)
        x = torch.nn.functional.gelu(torch.nn.functional.linear(x, layer.weight))
        assert 0.9 < x.var(dim=1).mean() < 1.1
    # Ten layers later, what had nothing in common still has not.
    assert torch.corrcoef(first)[0, 1:].abs().max() < 0.15
    assert torch.corrcoef(x)[0, 1:].abs().max() < 0.15
    small = ScaledLinear(256, 64, scale=0.1).initial_weight()
    assert small.std().item() == pytest.approx(0.1 * 5 / 3 / 16, rel=0.05)


def test_scores_start_with_a_variance_of_one():
    config = HierarchicalLmConfig(num_heads=4)  # heads of 64 keys
    torch.manual_seed(0)
    sarah = make_layer(512, config, means=0).output.initial_weight()
    assert (sarah[512:].std() / sarah[:512].std()).item() == pytest.approx(1 / 8, rel=0.02)
    transformer = make_layer(512, HierarchicalLmConfig(num_heads=4, sentence_encoder="transformer"), means=0)
    ratio = transformer.query.initial_weight().std() / transformer.key.initial_weight().std()
    assert ratio.item() == pytest.approx(1 / 8, rel=0.02)
    query = SentenceAttention(768, config).query.initial_weight()
    assert query.std().item() == pytest.approx(5 / 3 / 768**0.5 / 8, rel=0.02)


def test_the_seed_decides():
    torch.manual_seed(3)
    first = narrow_model(RECIPES["sarah-lm-gutenberg-small"]).state_dict()
    torch.manual_seed(3)
    second = narrow_model(RECIPES["sarah-lm-gutenberg-small"]).state_dict()
    third = narrow_model(RECIPES["sarah-lm-gutenberg-small"]).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not any(torch.equal(first[name], third[name]) for name in first if not name.endswith("bias"))


def test_only_what_a_checkpoint_lacks_is_drawn(tmp_path):
    model = narrow_model(RECIPES["sarah-lm-gutenberg-small"], width=16)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, 2.0, 3.0)
    weights = model.state_dict()
    missing = {
        "model.encoder.embed_tokens.weight",
        "model.encoder.layers.1.output.weight",
        "model.decoder.word_decoder.layers.layers.0.weight",
        "lm_head.bias",
    }
    model.save_pretrained(tmp_path, state_dict={name: weights[name] for name in weights.keys() - missing})
    # As saved when the field was there.
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"initializer_range": None}))
    loaded = HierarchicalLmForConditionalGeneration.from_pretrained(tmp_path).state_dict()
    assert {name for name in weights if not torch.equal(loaded[name], weights[name])} == missing
    assert loaded["model.encoder.embed_tokens.weight"].std().item() == pytest.approx(1, rel=0.1)
    drawn = loaded["model.encoder.layers.1.output.weight"]
    torch.testing.assert_close(drawn.sum(dim=1), torch.zeros(len(drawn)), rtol=0, atol=1e-5)
    assert drawn[:16].std() > 2 * drawn[16:].std() > 0
    assert not loaded["lm_head.bias"].any()
