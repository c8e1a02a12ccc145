"""Damaged and hostile checkpoints are refused in one line that says what is wrong, before anything is computed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from hf_paraphrase.checkpoints.pretrained import load_model, load_tokenizer, make_model
from hf_paraphrase.checkpoints.weights import check_plan
from hf_paraphrase.common.bounds import BOUNDS
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from hf_paraphrase.registration import ARCHITECTURES
from tests.checkpoints.damage import BOMBS, DAMAGES
from tests.checkpoints.hostile import change_json
from tests.cli.runner import run
from tests.models.tiny import WORDS, save, tiny_bart, tiny_matcher, tiny_model, tiny_t5

WRITERS = {"bart": tiny_bart, "ours": lambda: tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)}
SIZES = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "vocab_size": len(WORDS)}
SIZES |= {"max_position_embeddings": 32, "pad_token_id": 0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    return {name: save(make(), tmp_path_factory.mktemp(name)) for name, make in WRITERS.items()}


@pytest.fixture
def copy(request, folders, tmp_path) -> Path:
    return Path(shutil.copytree(folders[request.param], tmp_path / "copy"))


@pytest.mark.parametrize("damage", DAMAGES | BOMBS)
@pytest.mark.parametrize("copy", WRITERS, indirect=True)
def test_a_command_refuses_it_in_one_line(damage, copy, capsys):
    spoil, message = (DAMAGES | BOMBS)[damage]
    spoil(copy, random.Random(damage))
    assert run("paraphrase", copy, "the cat sat", "--max-new-tokens", "3") == 2
    said = capsys.readouterr()
    assert said.out == ""
    # Nothing but progress bars before the error.
    assert said.err.splitlines()[-1].startswith("error: ") and "Traceback" not in said.err
    assert message in said.err.splitlines()[-1]
    assert str(copy) in said.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["no tensors", "nan", "cut file", "negative size", "layers", "labels"])
def test_other_commands_refuse_it_too(name, tmp_path, capsys):
    spoil, _ = (DAMAGES | BOMBS)[name]
    copy = Path(save(tiny_matcher(2), tmp_path / "copy"))
    spoil(copy, random.Random(name))
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,label\na,b,0\n")
    (tmp_path / "texts.txt").write_text("the cat\na dog\n")
    good = save(tiny_bart(), tmp_path / "good")
    for command in (
        ["mine", tmp_path / "texts.txt", "--output", tmp_path / "out", "--encoder", copy],
        ["paraphrase", good, "the cat", "-n", "1", "--adequacy", "matcher", "--matcher", copy],
    ):
        assert run(*command) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_every_bomb_can_be_let_through(monkeypatch, folders, tmp_path):
    copy = Path(shutil.copytree(folders["bart"], tmp_path / "copy"))
    change_json(copy / "generation_config.json", num_beams=1001)
    with pytest.raises(InputError, match="HF_PARAPHRASE_MAX_BEAMS"):
        load_model(AutoModelForSeq2SeqLM, copy)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_BEAMS", "1001")
    assert load_model(AutoModelForSeq2SeqLM, copy).generation_config.num_beams == 1001
    monkeypatch.setenv("HF_PARAPHRASE_MAX_BEAMS", "many")
    with pytest.raises(InputError, match="HF_PARAPHRASE_MAX_BEAMS must be a whole number, not 'many'"):
        load_model(AutoModelForSeq2SeqLM, copy)


def test_a_recipe_of_any_size_is_refused_before_it_fills_the_memory():
    with pytest.raises(InputError, match="HF_PARAPHRASE_MAX_WEIGHTS"):
        make_model(AutoModelForSeq2SeqLM, ResidualLstmConfig(vocab_size=10**9, hidden_size=512, embedding_size=512))
    assert BOUNDS["WEIGHTS"] < 10**9 * 512


def test_a_config_of_more_than_its_files_hold_makes_no_weights(folders, tmp_path):
    """Missing weights would be drawn at random, however many."""
    copy = Path(shutil.copytree(folders["bart"], tmp_path / "copy"))
    save_file({}, copy / "model.safetensors", metadata={"format": "pt"})
    change_json(copy / "config.json", vocab_size=10**8)
    with pytest.raises(
        InputError, match=r"config.json describes 6,500,014,240 weights, but the files hold \d\d bytes"
    ):
        load_model(AutoModelForSeq2SeqLM, copy)


def test_weights_in_gguf_files_count(tmp_path):
    (tmp_path / "model.Q4_1.gguf").write_bytes(bytes(5_000_000))
    check_plan({"weight": (30_000_000,)}, "a model", tmp_path)
    with pytest.raises(InputError, match="the files hold 5,000,000 bytes"):
        check_plan({"weight": (30_000_001,)}, "a model", tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_large_finite_weights_are_finite(dtype, tmp_path):
    """Their sum is not."""
    model = tiny_bart()
    model.model.shared.weight.data.fill_(torch.finfo(dtype).max)
    model.to(dtype).save_pretrained(tmp_path)
    assert load_model(AutoModelForSeq2SeqLM, tmp_path).dtype == dtype


def tiny_marian(**more) -> MarianMTModel:
    return MarianMTModel(MarianConfig(**SIZES, decoder_start_token_id=0, **more))


def tiny_pegasus() -> PegasusForConditionalGeneration:
    return PegasusForConditionalGeneration(PegasusConfig(**SIZES))


@pytest.mark.parametrize("make", [tiny_bart, tiny_t5, tiny_marian, tiny_pegasus])
@pytest.mark.parametrize("tied", [True, False])
def test_other_libraries_models_load(make, tied, tmp_path):
    model = make(**({} if make is tiny_pegasus else {"tie_word_embeddings": tied}))
    model.save_pretrained(tmp_path)
    loaded = load_model(AutoModelForSeq2SeqLM, tmp_path)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in loaded.state_dict().items())


@pytest.mark.parametrize("make", [tiny_marian, tiny_pegasus])
def test_tables_of_sines_may_be_missing(make, tmp_path):
    """Versions of transformers before 4.20 left them, and the bias of the output, out of the files."""
    make().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if "embed_positions" not in name and "logits" not in name}
    assert len(kept) < len(tensors)
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded = load_model(AutoModelForSeq2SeqLM, tmp_path).state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in tensors.items())


@pytest.mark.parametrize(
    ("row", "auto_class"),
    [(row, auto_class) for row in ARCHITECTURES for auto_class in row.model_classes],
    ids=lambda value: getattr(value, "model_type", getattr(value, "__name__", None)),
)
def test_every_architecture_of_ours_loads(row, auto_class, tmp_path):
    model = tiny_model(row.config_class, row.model_classes[auto_class])
    model.save_pretrained(tmp_path)
    loaded = load_model(auto_class, tmp_path)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in loaded.state_dict().items())


def test_an_encoder_needs_neither_the_head_that_it_was_trained_with_nor_a_pooler(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(tmp_path)
    assert load_model(AutoModel, tmp_path).config.hidden_size == 8
    with pytest.raises(InputError, match="the weights lack bert.pooler.dense.bias"):
        load_model(AutoModelForSequenceClassification, tmp_path)


def test_training_may_begin_with_a_new_head_but_not_with_half_a_model(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    AutoModel.from_config(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(tmp_path)
    assert load_model(AutoModelForSequenceClassification, tmp_path, new_head=True).num_labels == 2
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["encoder.layer.0.output.dense.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="the weights lack bert.encoder.layer.0.output.dense.weight"):
        load_model(AutoModelForSequenceClassification, tmp_path, new_head=True)


def test_tokenizers_that_people_use_pass(tmp_path):
    """SentencePiece's normalization writes up to 18 characters for one, and others write a word for a mark."""
    save(tiny_bart(), tmp_path)
    steps = [
        {"type": "NFKC"},
        {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"String": "\n"}, "content": "<br>"},
    ]
    change_json(tmp_path / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": steps})
    assert load_tokenizer(tmp_path)("the cat")["input_ids"] == [WORDS.index("the"), WORDS.index("cat"), 2]
