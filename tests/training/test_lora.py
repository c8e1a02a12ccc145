"""Adapters by peft: a run trains and resumes them alone, and ends with a model that needs no peft."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaForCausalLM

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.arguments import AnswerConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.lora import add_lora, load_lora, merge_lora, save_lora
from hf_paraphrase.training.recipe import Recipe
from tests.generation.language_models import PROMPT, byte_tokenizer, tiny_llama
from tests.models.tiny import save
from tests.training.tiny_runs import assert_equal, make_pairs

LORA = {"r": 2, "lora_alpha": 4, "lora_dropout": 0.1, "target_modules": ["q_proj", "down_proj"]}


@pytest.fixture
def pretrained(tmp_path: Path) -> str:
    return save(tiny_llama(), tmp_path / "pretrained", byte_tokenizer())


def make_recipe(pretrained: str | None, lora: dict | None = LORA, **others) -> Recipe:
    PROMPT.save(Path(pretrained or "", "mine.yaml"))
    fields = {"task": "answer", "dataset": "words", "pretrained": pretrained, "lora": lora, "disable_tqdm": True}
    fields |= {"prompt": str(Path(pretrained or "", "mine.yaml")), "num_train_epochs": 2, "train_batch_size": 10}
    return Recipe("tiny", {"model_type": "llama"}, {}, AnswerConfig(**{**fields, "learning_rate": 0.05, **others}))


def test_a_run_ends_with_the_merged_model_and_goes_on_exactly(pretrained: str, tmp_path: Path) -> None:
    pairs, recipe = make_pairs(train=20, validation=5), make_recipe(pretrained)
    summary = train(recipe, tmp_path / "whole", dataset=pairs)
    losses = [entry["eval_loss"] for entry in summary["evaluations"]]
    assert losses[-1] < losses[0] and summary["best"]["step"] == summary["steps"]
    assert summary["num_parameters"] == tiny_llama().num_parameters()
    train(make_recipe(pretrained, max_train_time=1e-9), tmp_path / "parts", dataset=pairs)
    train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    merged, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert_equal(merged, parts)

    before = load_file(Path(pretrained) / "model.safetensors")
    changed = {name for name, tensor in merged.items() if not torch.equal(tensor, before[name])}
    assert merged.keys() == before.keys()
    assert changed == {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight"}
    (adapter,) = tmp_path.glob("whole/checkpoints/last-*")
    ids = torch.arange(2, 12).unsqueeze(0)
    base = AutoModelForCausalLM.from_pretrained(pretrained)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "whole")
    expected = PeftModel.from_pretrained(base, adapter).eval()(ids).logits
    assert torch.allclose(model(ids).logits, expected, atol=1e-4)
    assert not (adapter / "model.safetensors").exists()
    paraphraser = Paraphraser.from_pretrained(tmp_path / "whole")
    assert paraphraser("the cat sat", 1, keep=[], min_adequacy=0.0, return_rejected=True)


def test_a_damaged_adapter_is_named(pretrained: str, tmp_path: Path) -> None:
    pairs = make_pairs(train=20, validation=5)
    train(make_recipe(pretrained, max_train_time=1e-9), tmp_path / "run", dataset=pairs)
    (adapter,) = tmp_path.glob("run/checkpoints/last-*")
    (adapter / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"checkpoint .*last-\d+ is damaged"):
        train(make_recipe(pretrained), tmp_path / "run", dataset=pairs, resume=True)
    (Path(pretrained) / "config.json").unlink()
    with pytest.raises(InputError, match="^`pretrained`"):  # whose fault it is not
        train(make_recipe(pretrained), tmp_path / "run", dataset=pairs, resume=True)


def tiny_gpt2() -> GPT2LMHeadModel:
    """Its weights are transposed."""
    config = GPT2Config(vocab_size=68, n_embd=16, n_layer=1, n_head=2, bos_token_id=None, eos_token_id=1)
    return GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("options", [{}, {"use_dora": True}, {"use_rslora": True}, {"bias": "all"}])
@pytest.mark.parametrize(("make", "module"), [(tiny_llama, "q_proj"), (tiny_gpt2, "c_attn")])
def test_merged_weights_write_what_the_adapters_write(
    make, module: str, options: dict, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    model, again, plain = make(), make(), make()
    again.load_state_dict(model.state_dict())
    plain.load_state_dict(model.state_dict())
    for one in (model, again):
        add_lora(one, {"r": 2, "target_modules": [module], **options}, "base")
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and "magnitude" not in name:
            torch.nn.init.normal_(parameter, std=0.2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ids = torch.arange(2, 12).unsqueeze(0)
    original = plain(ids).logits
    plain.load_state_dict(merge_lora(model))
    assert torch.allclose(plain(ids).logits, model.eval()(ids).logits, atol=1e-4)
    assert not torch.allclose(plain(ids).logits, original, atol=1e-2)
    save_lora(model, tmp_path)
    load_lora(again, tmp_path)
    for one in (model, again):
        assert_equal(dict(one.state_dict()), before)


def test_options_that_cannot_be(pretrained: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(lora: dict) -> None:
        pairs = make_pairs(train=5, validation=5)
        train(make_recipe(pretrained, lora), tmp_path / "run", dataset=pairs, overwrite=True)

    for lora, message in (
        ({"rank": 2}, "`lora`: .*'rank'"),
        ({"r": 0, "target_modules": ["q_proj"]}, "`lora`: .*r"),
        ({"target_modules": ["c_attn"]}, "`lora`: Target modules .*c_attn"),
        ({"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, "`lora`: `modules_to_save` cannot be merged"),
    ):
        with pytest.raises(InputError, match=message):
            run(lora)
    with pytest.raises(InputError, match="`lora` trains adapters of `pretrained`: name a checkpoint"):
        AnswerConfig(task="answer", dataset="words", lora=LORA)
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"`lora` needs peft; install it with: pip install .*\[peft\]"):
        run(LORA)


def test_adapters_of_shared_weights_are_refused(recwarn: pytest.WarningsRecorder) -> None:
    config = tiny_llama().config
    config.tie_word_embeddings = True
    with pytest.raises(InputError, match="lm_head shares its weights"):
        add_lora(LlamaForCausalLM(config), {"target_modules": ["lm_head"]}, "base")
