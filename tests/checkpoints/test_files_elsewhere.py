"""No file of a checkpoint names one elsewhere that is then read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.checkpoints.pretrained import load_model, load_tokenizer
from hf_paraphrase.checkpoints.trust import check_checkpoint, check_nested_code
from hf_paraphrase.common.errors import InputError
from tests.checkpoints.hostile import change_json
from tests.models.tiny import save, tiny_bart


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(save(tiny_bart(), tmp_path / "model"))


@pytest.fixture
def outside(tmp_path) -> str:
    (tmp_path / "outside").write_text("secret\nwords\n")
    return str(tmp_path / "outside")


@pytest.mark.parametrize("field", ["vocab_file", "vocab", "merges_file", "tokenizer_file", "gguf_file"])
def test_special_tokens_are_no_files(field, folder, outside):
    (folder / "special_tokens_map.json").write_text(json.dumps({field: outside, "unk_token": "<unk>"}))
    with pytest.raises(InputError, match=f"special_tokens_map.json: `{field}` is not a special token"):
        load_tokenizer(folder)


@pytest.mark.parametrize(
    "values",
    [{"vocab": "{}"}, {"merges": "{}"}, {"spm_file": "{}"}, {"gguf_file": "{}"}, {"a": {"b": ["{}"]}}]
    + [{"init_inputs": ["{}"]}],
)
def test_a_tokenizer_config_names_no_file_elsewhere(values, folder, outside):
    change_json(folder / "tokenizer_config.json", **json.loads(json.dumps(values).replace("{}", outside)))
    with pytest.raises(InputError, match=r"config.json: `(vocab|merges|spm_file|gguf_file|a\.b\.0|init_inputs)`"):
        load_tokenizer(folder)


def test_words_of_a_file_elsewhere_do_not_reach_the_vocabulary(folder, outside):
    """The report: a checkpoint whose words are those of any file of this machine."""
    (folder / "tokenizer.json").unlink()
    config = {"tokenizer_class": "BertTokenizer", "model_type": "bert"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "special_tokens_map.json").write_text(json.dumps({"vocab_file": outside, "vocab": outside}))
    with pytest.raises(InputError, match="special_tokens_map.json: `vocab_file` is not a special token"):
        load_tokenizer(folder)


def test_what_transformers_notes_is_no_file_that_is_read(folder, outside):
    """Nor is a special token or a template, whatever it looks like."""
    tokens = {"additional_special_tokens": ["/", "//", "/e"], "sep_token": {"content": "/etc"}}
    (folder / "special_tokens_map.json").write_text(json.dumps({"unk_token": "<unk>", **tokens}))
    change_json(folder / "tokenizer_config.json", name_or_path=outside, tokenizer_file=outside, chat_template=outside)
    assert load_tokenizer(folder).unk_token == "<unk>"


def test_an_adapter_is_of_no_folder_elsewhere(folder, tmp_path):
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "google/gemma-3-1b-it"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    check_checkpoint(folder)
    change_json(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path))
    with pytest.raises(InputError, match="adapter_config.json: `base_model_name_or_path` names a folder elsewhere"):
        check_checkpoint(folder)


@pytest.mark.parametrize(
    "name", ["adapter_model.bin", "sub/x.safetensors", "../model.safetensors", "sub/x.index.json", 7]
)
def test_a_config_names_no_weights_elsewhere_and_no_pickle(name, folder):
    change_json(folder / "config.json", transformers_weights="model.safetensors")
    assert load_model(AutoModelForSeq2SeqLM, folder)
    change_json(folder / "config.json", transformers_weights=name)
    with pytest.raises(
        InputError, match="config.json: `transformers_weights` must name a .safetensors file beside it"
    ):
        load_model(AutoModelForSeq2SeqLM, folder)


@pytest.mark.parametrize("variant", ["", ".fp16"])
def test_an_index_of_safetensors_names_no_pickle(variant, folder):
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "weights.bin")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "weights.bin")}
    (folder / f"model.safetensors.index{variant}.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="names the weights 'weights.bin', which is no .safetensors file"):
        load_model(AutoModelForSeq2SeqLM, folder)


def test_code_is_found_at_any_depth():
    config = {"auto_map": {"AutoModel": "a.B"}}
    check_nested_code(config, "config.json")
    for names in (["decoder"], ["a", "b"], ["a"] * 5000):
        nested = config
        for name in names:
            nested = {name: nested, "list": [1]}
        with pytest.raises(InputError, match=r"config.json: `(decoder|b\.a|a\.a)\.(.*)` names code of its own"):
            check_nested_code(nested, "config.json")
    with pytest.raises(InputError, match="`parts.1.auto_map`"):
        check_nested_code({"parts": [{}, config]}, "config.json")


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "experts_implementation"])
@pytest.mark.parametrize("nest", [lambda value: value, lambda value: {"decoder": value}])
def test_no_kernels_of_a_repository(name, nest, folder):
    """transformers downloads them and runs them where `kernels` is installed."""
    change_json(folder / "config.json", **{name: nest("sdpa")})
    check_checkpoint(folder)
    change_json(folder / "config.json", **{name: nest("evil/kernels@main:run")})
    with pytest.raises(InputError, match=rf"config.json: `{name}.*` names a repository of kernels, .evil/kernels"):
        check_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, "{", "[]", '{"a": ' * 100_000])
def test_what_is_no_json_object_is_named(name, content, folder):
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"{name} (is not valid JSON|must hold one JSON object)"):
        check_checkpoint(folder)
