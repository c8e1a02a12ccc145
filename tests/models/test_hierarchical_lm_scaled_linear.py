from __future__ import annotations

import json
import math

import pytest
import torch

from hf_paraphrase import HierarchicalLmTokenizer
from hf_paraphrase.models.hierarchical_lm.configuration_hierarchical_lm import HierarchicalLmConfig
from hf_paraphrase.models.hierarchical_lm.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration
from hf_paraphrase.models.hierarchical_lm.sentence_layers import ScaledLinear, SentenceAttention, make_layer
from hf_paraphrase.training.recipe import list_recipes, load_recipe

RECIPES = {name: load_recipe(folder).model_config for name, folder in list_recipes().items()}
RECIPES = {name: config for name, config in RECIPES.items() if config["model_type"] == "hierarchical_lm"}
# The deep recipe has ten layers of SARAh; the others are to learn as deep.
DEEP = {f"deep {kind}": RECIPES["deep-lm-books"] | {"sentence_encoder": kind} for kind in ("gru", "transformer")}
DEEP["deep mlp"] = RECIPES["deep-lm-books"] | {"word_decoder": "mlp"}
# Each architecture once, whatever is predicted.
SIZES = {json.dumps(config | {"decode_window": None}, sort_keys=True): name for name, config in RECIPES.items()}

TEXTS = [
    "It was a fine morning, and the captain walked slowly along the quay.",
    "Nothing is easier than to admit in words the truth of the universal struggle for life.",
    '"I never saw such a man," said the mate; "he won\'t listen to anybody."',
    "She looked up from her sewing, sighed, and asked him what he had done with the money.",
    "The many slight differences which appear in the offspring from the same parents are individual differences.",
    "After a long silence the old man shook his head.",
    "Rain.",
    "He went below at once.",
]


def narrow(config: dict, width: int = 96) -> dict:
    """The configuration with a recipe's depth and fewer units."""
    stacks = {
        name: [min(size, width) for size in config[name]] for name in ("word_encoder_sizes", "word_decoder_sizes")
    }
    return config | stacks | {"value_size": width, "key_size": width // 2, "word_decoder_hidden_size": width // 2}


def make_model(config: dict) -> HierarchicalLmForConditionalGeneration:
    return HierarchicalLmForConditionalGeneration(HierarchicalLmConfig(**config)).train()


def make_batch(texts: list[str]) -> dict[str, torch.Tensor]:
    inputs = HierarchicalLmTokenizer()(texts, padding=True, return_tensors="pt")
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    return {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"], "labels": labels.roll(1, 0)}


def rms(x: torch.Tensor) -> float:
    return x.square().mean().sqrt().item()


@pytest.mark.parametrize("name", [*SIZES.values(), *DEEP])
def test_neither_vectors_nor_gradients_vanish_or_explode(name):
    """In a recipe's first step, at its width and with its dropout and noise."""
    torch.manual_seed(0)
    model = make_model(RECIPES[name] if name in RECIPES else narrow(DEEP[name], 256))
    batch = make_batch(TEXTS if model.config.value_size < 2048 else TEXTS[-3:])
    encoded, decoded = [], []
    model.model.encoder.register_forward_hook(lambda _, inputs, output: encoded.append(output.sentence_states))
    for layer in model.model.decoder.layers:
        layer.register_forward_hook(lambda _, inputs, output: decoded.append(output[:, : model.config.value_size]))
    loss = model(**batch).loss
    loss.backward()
    # No more than guessing costs, in nats, and no larger a gradient than a clip of 5 is for.
    assert loss < math.log(306) + 1.2
    assert torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()]) < 25
    (vectors,) = encoded
    assert len(decoded) == vectors.shape[1] == model.config.num_layers
    for vector in vectors.unbind(1):
        assert 0.1 < rms(vector) < 3
        # It tells sentences apart.
        assert rms(vector - vector.mean(dim=0)) > 0.05 * rms(vector)
    assert all(0.2 < rms(values) < 4 for values in decoded)
    gradients = {name: rms(parameter.grad) for name, parameter in model.named_parameters()}
    # Adam divides by the size of the gradient plus 1e-8.
    assert min(gradients.values()) > 1e-7 and max(gradients.values()) < 1, gradients


@pytest.mark.parametrize("size", [0.7, 1.0, 1.5])
def test_vectors_of_any_size_come_back_to_a_mean_square_of_one(size):
    torch.manual_seed(0)
    x, layers = size * torch.randn(16, 1024), [ScaledLinear(1024, 1024) for _ in range(30)]
    with torch.no_grad():
        for layer in layers:
            weight, bias = layer.draw()
            x = torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))
    assert 0.6 < rms(x) < 1.5
    assert rms(x - x.mean(dim=0)) > 0.05


def test_what_is_known_of_inputs_and_outputs_scales_parameters():
    torch.manual_seed(0)
    weight, bias = ScaledLinear(400, 500).draw()
    assert weight.std().item() == pytest.approx(1.47 * 0.9**0.5 / 20, rel=0.02)
    assert bias.std().item() == pytest.approx(1.47 * 0.1**0.5, rel=0.1)
    small, small_bias = ScaledLinear(400, 500, mean_square=4.0, scale=0.1).draw()
    assert (small.std() / weight.std()).item() == pytest.approx(0.05, rel=0.02)
    assert (small_bias.std() / bias.std()).item() == pytest.approx(0.1, rel=0.1)
    assert ScaledLinear(3, 2, bias=False).draw()[1] is None


def test_keys_or_queries_start_small():
    config = HierarchicalLmConfig(num_heads=4, key_size=1024, word_encoder_sizes=(1024,))  # heads of 256 keys
    torch.manual_seed(0)
    for sarah in make_layer(1024, config, means=0).output.draw():
        assert (sarah[512:].std() / sarah[:512].std()).item() == pytest.approx(1 / 4, rel=0.1)
    config.sentence_encoder = "transformer"
    layer = make_layer(1024, config, means=0)
    assert (layer.query.draw()[0].std() / layer.key.draw()[0].std()).item() == pytest.approx(1 / 4, rel=0.02)
    assert SentenceAttention(1024, config).query.scale == 1 / 4


@pytest.mark.parametrize("name", ["deep-lm-books", "deep gru", "deep transformer"])
def test_ten_layers_learn(name):
    torch.manual_seed(0)
    quiet = {"decode_window": None, "dropout": 0.0}
    model, batch = make_model(narrow((RECIPES | DEEP)[name], width=48) | quiet), make_batch(TEXTS)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=2e-3), []
    for _ in range(40):
        losses.append(model(**batch).loss)
        losses[-1].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 2.8


def test_the_seed_decides():
    torch.manual_seed(3)
    first = make_model(narrow(RECIPES["sarah-lm-gutenberg-small"])).state_dict()
    torch.manual_seed(3)
    second = make_model(narrow(RECIPES["sarah-lm-gutenberg-small"])).state_dict()
    third = make_model(narrow(RECIPES["sarah-lm-gutenberg-small"])).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not any(torch.equal(first[name], third[name]) for name in first if name.endswith("weight"))


def test_only_what_a_checkpoint_lacks_is_drawn(tmp_path):
    model = make_model(narrow(RECIPES["sarah-lm-gutenberg-small"], width=16) | {"dropout": 0.0})
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
    keys = loaded["model.encoder.layers.1.output.weight"][16:]
    assert keys.std().item() == pytest.approx(8**-0.25 * 1.47 * (0.9 / (16 * 2.3)) ** 0.5, rel=0.2)
    assert not loaded["lm_head.bias"].any()
