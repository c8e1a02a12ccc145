"""Ways to damage a checkpoint, each with a word that the error about it must have."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.hostile import change_json

Damage = tuple[Callable[[Path, random.Random], object], str]
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


def change_weights(change: Callable[[dict[str, torch.Tensor], random.Random], None]) -> Callable:
    """A damage that rewrites the tensors."""

    def damage(folder: Path, draw: random.Random) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors, draw)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def set_number(value: float) -> Callable:
    """A damage that puts a number somewhere into the weights."""

    def change(tensors: dict[str, torch.Tensor], draw: random.Random) -> None:
        name = draw.choice([name for name in sorted(tensors) if tensors[name].is_floating_point()])
        tensors[name] = tensors[name].clone()
        tensors[name].view(-1)[draw.randrange(tensors[name].numel())] = value

    return change_weights(change)


def drop_some(tensors: dict[str, torch.Tensor], draw: random.Random) -> None:
    # A bias that is all zeros may be declared as one that can be left out.
    names = sorted(name for name in tensors if "bias" not in name)
    for name in draw.sample(names, draw.randint(1, 3)):
        del tensors[name]


def cut(folder: Path, draw: random.Random) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def overwrite_header(folder: Path, draw: random.Random) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[0:8] = draw.randrange(2**63).to_bytes(8, "little")
    path.write_bytes(content)


def lie_about_shards(folder: Path, draw: random.Random) -> None:
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(["a", "b"], "model-00001-of-00001.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def config(**values: object) -> Callable:
    """A damage of config.json."""
    return lambda folder, draw: change_json(folder / "config.json", **values)


def write(name: str, content: str) -> Callable:
    """A damage that replaces a file."""
    return lambda folder, draw: (folder / name).write_text(content)


def generation(**values: object) -> Callable:
    """A damage of generation_config.json."""
    return lambda folder, draw: (folder / "generation_config.json").write_text(json.dumps(values))


def tokenizer_config(**values: object) -> Callable:
    """A damage of tokenizer_config.json."""
    return lambda folder, draw: change_json(folder / "tokenizer_config.json", **values)


def tokenizer(**parts: object) -> Callable:
    """A damage of tokenizer.json."""
    return lambda folder, draw: change_json(folder / "tokenizer.json", **parts)


def replace_by(content: str, times: int = 1) -> dict:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return {"type": "Sequence", "normalizers": [step] * times}


DAMAGES: dict[str, Damage] = {
    "no tensors": (change_weights(lambda tensors, draw: tensors.clear()), "the weights lack"),
    "some tensors": (change_weights(drop_some), "the weights lack"),
    "another tensor": (
        change_weights(lambda tensors, draw: tensors.update({"one_more": torch.zeros(2)})),
        "hold unexpected one_more",
    ),
    "nan": (set_number(float("nan")), "not finite"),
    "inf": (set_number(float("inf")), "not finite"),
    "-inf": (set_number(float("-inf")), "not finite"),
    "empty file": (write("model.safetensors", ""), "model.safetensors is damaged"),
    "text": (
        write("model.safetensors", "version https://git-lfs.github.com/spec/v1\n"),
        "model.safetensors is damaged",
    ),
    "cut file": (cut, "model.safetensors is damaged"),
    "header": (overwrite_header, "model.safetensors is damaged"),
    "shards": (lie_about_shards, "model-00001-of-00001.safetensors"),
    "vocab_size": (config(vocab_size=7), "has the shape"),
    "negative size": (config(hidden_size=-5, d_model=-5), "-5"),
    "size is a word": (config(hidden_size="x", d_model="x"), "'x'"),
    "dtype": (config(dtype="bogus"), "bogus"),
    "beams in words": (generation(num_beams="4"), "`num_beams` must be a number, not '4'"),
    "another vocabulary's start": (
        generation(decoder_start_token_id=99_999),
        "`decoder_start_token_id` is 99999, but the vocabulary has",
    ),
    "prefix is a number": (config(prefix=7), "`prefix` must be text, not 7"),
    "half a character": (config(prefix="\ud800"), "half of a surrogate pair"),
    "tasks are a list": (config(task_specific_params=[1]), "`task_specific_params` must hold an object for each task"),
    "longest text is negative": (tokenizer_config(model_max_length=-3), "`model_max_length` of the tokenizer"),
    "longest text in words": (tokenizer_config(model_max_length="many"), "`model_max_length` of the tokenizer"),
    "another library": (
        config(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
        "needs a library that is not installed",
    ),
    "config is a list": (write("config.json", "[]"), "config.json must hold one JSON object"),
    "deep config": (write("config.json", DEEP), "config.json is not valid JSON: it nests too deeply"),
    "deep generation config": (write("generation_config.json", DEEP), "generation_config.json is not valid JSON"),
    "deep tokenizer config": (write("tokenizer_config.json", DEEP), "tokenizer_config.json is not valid JSON"),
    "digits": (write("config.json", '{"a": ' + "1" * 5000 + "}"), "PYTHONINTMAXSTRDIGITS"),
}
BOMBS: dict[str, Damage] = {
    "layers": (config(num_layers=10**9, encoder_layers=10**9), "HF_PARAPHRASE_MAX_LAYERS"),
    "layers as a float": (config(num_layers=1e9, encoder_layers=1e9), "HF_PARAPHRASE_MAX_LAYERS"),
    "layers of a part": (config(encoder={"num_hidden_layers": 10**9}), "HF_PARAPHRASE_MAX_LAYERS"),
    "labels": (config(num_labels=10**9), "HF_PARAPHRASE_MAX_LABELS"),
    "vocabulary": (config(vocab_size=10**10), "HF_PARAPHRASE_MAX_WEIGHTS"),
    "beams": (generation(num_beams=10**6), "HF_PARAPHRASE_MAX_BEAMS"),
    "beams of a task": (
        config(task_specific_params={"text2text-generation": {"num_beams": 10**6}}),
        "HF_PARAPHRASE_MAX_BEAMS",
    ),
    "outputs": (generation(num_return_sequences=10**6, do_sample=True), "HF_PARAPHRASE_MAX_BEAMS"),
    "new tokens": (generation(max_new_tokens=1e9), "HF_PARAPHRASE_MAX_NEW_TOKENS"),
    "min length": (generation(min_length=10**9), "HF_PARAPHRASE_MAX_NEW_TOKENS"),
    "normalizer": (tokenizer(normalizer=replace_by("aaaaaaaaaa", 12)), "HF_PARAPHRASE_MAX_TOKENIZER_GROWTH"),
    "decoder": (
        tokenizer(decoder={"type": "Sequence", "decoders": replace_by("a" * 10, 12)["normalizers"]}),
        "HF_PARAPHRASE_MAX_TOKENIZER_GROWTH",
    ),
    "template": (
        tokenizer(
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 1000,
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {},
            }
        ),
        "HF_PARAPHRASE_MAX_TOKENIZER_GROWTH",
    ),
    "padding": (
        tokenizer(
            padding={
                "strategy": {"Fixed": 10**9},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "<pad>",
            }
        ),
        "HF_PARAPHRASE_MAX_NEW_TOKENS",
    ),
}
