"""A language model in a .gguf file: a tiny one, written here as llama.cpp's converter writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFWriter, TokenType
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.kinds import find_kind
from hf_paraphrase.generation.loading import load_paraphraser

from .language_models import CHAT, PROMPT, byte_tokenizer, tiny_llama

# The names of a layer's weights, here and there.
LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
NAMES |= {f"model.layers.0.{ours}": f"blk.0.{theirs}" for ours, theirs in LAYER.items()}


def write_gguf(model: LlamaForCausalLM, path: Path) -> str:
    config, writer = model.config, GGUFWriter(path, "llama")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model("gpt2")
    tokens = byte_tokenizer().convert_ids_to_tokens(range(config.vocab_size))
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token.startswith("<") else TokenType.NORMAL for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))  # there are no merges
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(CHAT)
    for name, tensor in model.state_dict().items():
        weights, module = tensor.numpy(), name.removesuffix(".weight")
        if module.endswith(("q_proj", "k_proj")):  # whose pairs of rotated numbers are neighbours there
            halves = weights.reshape(config.num_attention_heads, 2, -1, config.hidden_size)
            weights = halves.swapaxes(1, 2).reshape(weights.shape)
        writer.add_tensor(f"{NAMES[module]}.weight", np.ascontiguousarray(weights, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gguf(tiny_llama(), tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_it_paraphrases_as_the_model_it_was_made_of(path: str) -> None:
    options = {"seed": 1, "keep": (), "min_adequacy": 0, "return_rejected": True, "max_new_tokens": 12}
    texts = ["how do i cook", "a cat sat with Ann"]
    ours = Paraphraser.from_pretrained(path, prompt=PROMPT)
    theirs = Paraphraser(tiny_llama(), byte_tokenizer(), prompt=PROMPT)
    assert ours.writer.encoder.encode(texts[0]) == theirs.writer.encoder.encode(texts[0])
    found, expected = ours(texts, 2, **options), theirs(texts, 2, **options)
    assert [[(p.text, p.reason) for p in group] for group in found] == [
        [(p.text, p.reason) for p in group] for group in expected
    ]
    assert find_kind(path, None) == "paraphraser"


def test_it_may_stand_beside_links_of_its_owner(path: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").symlink_to(path)
    (tmp_path / "music").symlink_to(Path(path).parent)
    assert Paraphraser.from_pretrained(tmp_path / "tiny.gguf", prompt=PROMPT).model.num_parameters()
    (tmp_path / "chat_template.jinja").symlink_to(path)
    with pytest.raises(InputError, match=r"chat_template.jinja is a link that leads out of"):
        Paraphraser.from_pretrained(tmp_path / "tiny.gguf", prompt=PROMPT)


def test_it_can_be_saved_and_converted(path: str, tmp_path: Path) -> None:
    model, tokenizer = load_paraphraser(path, causal=True)
    model.save_pretrained(tmp_path)
    saved = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.arange(2, 12).unsqueeze(0)
    assert torch.equal(saved(ids).logits, model(ids).logits)
    assert Paraphraser(model, tokenizer, backend="ctranslate2")("how do i cook", 1, return_rejected=True)


def test_without_the_package_it_says_what_to_install(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"a GGUF file needs gguf; install it with: pip install .*\[gguf\]"):
        Paraphraser.from_pretrained(path)
