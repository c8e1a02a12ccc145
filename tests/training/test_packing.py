"""Packed examples against the same examples in rows of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.arguments import AnswerConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks.answer import AnswerTask, check_packing, pack_rows
from tests.generation.language_models import PROMPT, byte_tokenizer, tiny_llama
from tests.models.tiny import save
from tests.training.tiny_runs import assert_equal, last_weights, make_pairs

MARKS = {"vocab_size": 68, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def make_model(kind: str, **options) -> torch.nn.Module:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **MARKS, **options)).eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    return model


@pytest.fixture
def fields(tmp_path: Path) -> dict:
    PROMPT.save(tmp_path / "mine.yaml")
    pretrained = save(tiny_llama(), tmp_path / "pretrained", byte_tokenizer())
    fields = {"task": "answer", "dataset": "words", "pretrained": pretrained, "prompt": str(tmp_path / "mine.yaml")}
    return {**fields, "num_train_epochs": 2, "train_batch_size": 10, "learning_rate": 0.01, "disable_tqdm": True}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("llama", SIZES),
        ("llama", {**SIZES, "attn_implementation": "eager"}),
        ("qwen3", {**SIZES, "num_key_value_heads": 1, "head_dim": 8}),
        ("gpt2", {"n_embd": 16, "n_layer": 2, "n_head": 2}),
    ],
)
def test_the_loss_and_its_gradient_are_those_without_packing(fields: dict, kind: str, options: dict) -> None:
    pairs, found = make_pairs(train=9, validation=2), {}
    for packing in (False, True):
        task = AnswerTask(AnswerConfig(**fields, packing=packing, max_prompt_length=90, max_target_length=40))
        model = make_model(kind, **options)
        data = task.encode(pairs, task.make_tokenizer(pairs["train"], 0))
        task.prepare_model(model, data)
        batch = task.make_collator(data.tokenizer)(task.features(data.splits["train"], range(9), 0))
        loss, _ = task.loss_sums(model, batch, data)
        loss.backward()
        found[packing] = loss.item(), [parameter.grad for parameter in model.parameters()], len(batch["labels"])
    assert found[True][0] == pytest.approx(found[False][0], rel=1e-5)
    for one, other in zip(found[True][1], found[False][1], strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)
    assert found[True][2] < found[False][2] == 9


def test_rows_are_filled_and_never_over_full() -> None:
    lengths = [3, 9, 4, 6, 5, 2, 10, 1]
    examples = [([10 * number + 1] * length, [-100] * length) for number, length in enumerate(lengths)]
    batch = pack_rows(examples, 10, 0)
    assert batch["input_ids"].shape == (4, 10) and not (batch["input_ids"] == 0).any()
    assert sorted(batch["input_ids"].flatten().tolist()) == sorted(token for ids, _ in examples for token in ids)
    starts = batch["position_ids"] == 0
    assert starts.sum() == len(examples) and starts[:, 0].all()
    longer = pack_rows([([1] * 12, [-100] * 12), ([2], [-100])], 10, 0)
    assert longer["input_ids"].tolist() == [[1] * 12, [2] + [0] * 11]
    assert longer["position_ids"][1].tolist() == [0] * 12


def test_a_packed_run_goes_on_exactly(fields: dict, tmp_path: Path) -> None:
    def run(name: str, resume: bool = False, **others) -> None:
        recipe = Recipe("tiny", {"model_type": "llama"}, {}, AnswerConfig(**fields, packing=True, **others))
        train(recipe, tmp_path / name, dataset=make_pairs(train=20, validation=5), resume=resume)

    run("whole")
    run("parts", max_train_time=1e-9)
    run("parts", resume=True)
    assert_equal(last_weights(tmp_path / "whole"), last_weights(tmp_path / "parts"))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("bloom", {"hidden_size": 16, "n_layer": 2, "n_head": 2}),
        ("mamba", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
    ],
)
def test_models_that_would_read_other_examples_are_refused(kind: str, options: dict) -> None:
    model = make_model(kind, **options)
    with pytest.raises(InputError, match="`packing`: a .* does not keep packed examples apart"):
        check_packing(model, list(range(2, 12)))


def test_flash_attention_is_refused() -> None:
    """It reads the positions of one row alone."""
    model = make_model("llama", **SIZES)
    check_packing(model, list(range(2, 12)))
    model.config._attn_implementation_internal = "flash_attention_2"
    with pytest.raises(InputError, match="`packing` needs .* not flash_attention_2"):
        check_packing(model, list(range(2, 12)))
