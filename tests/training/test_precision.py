from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from datasets import Dataset, DatasetDict
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_paraphrase.common.fields import read_yaml
from hf_paraphrase.models.layers.precision import runs_lstm
from hf_paraphrase.training import loop
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import list_recipes, load_recipe
from tests.generation.paraphrasers import tiny_residual_lstm
from tests.models.tiny import shrink

from .tiny_runs import make_pairs, make_recipe

# The recipes that state a precision themselves; those that extend them have the same models.
LOWERED = [
    name
    for name, folder in sorted(list_recipes().items())
    if folder.is_dir() and read_yaml(folder / "training.yaml").get("mixed_precision") in loop.DTYPES
]
# Rows of one length, so that no batch is padded and every LSTM runs over whole sequences.
EVEN = {"source": ["a b c"] * 16, "target": ["c b a"] * 16}
DOCUMENTS = {"sentences": [["a b", "b c"]] * 16}


def train_shortly(name, folder):
    """Train a recipe's model, small, in the recipe's precision."""
    recipe = load_recipe(name)
    recipe = recipe.override(shrink(recipe.model_config))
    if recipe.training.mixture:
        recipe = recipe.override({"mixture": [], "dataset": "synthetic_questions", "pairs_per_group": None})
        recipe = recipe.override({"tokenizer_model": "word"})
    recipe = recipe.override({"max_steps": 2, "train_batch_size": 8, "max_tokens_per_batch": None, "warmup_steps": 0})
    rows = Dataset.from_dict(DOCUMENTS if recipe.training.task == "autoencode" else EVEN)
    return train(recipe, folder, dataset=DatasetDict(train=rows, validation=rows))


@pytest.mark.parametrize("name", LOWERED)
def test_recipes_run_in_their_precision_where_the_machine_has_it(name, tmp_path, other_precision):
    summary = train_shortly(name, tmp_path)
    assert summary["mixed_precision"] == ("bf16" if runs_lstm(torch.bfloat16) else "no")
    assert math.isfinite(summary["last"]["eval_loss"])


@pytest.mark.parametrize("name", LOWERED)
def test_recipes_run_in_float32_on_a_cpu_without_bfloat16(
    name, tmp_path, other_precision, cpu_without_bfloat16, caplog
):
    summary = train_shortly(name, tmp_path)
    assert summary["mixed_precision"] == "no" and math.isfinite(summary["last"]["eval_loss"])
    (said,) = [record.getMessage() for record in caplog.records if "float32" in record.getMessage()]
    assert said == "`mixed_precision: bf16`: this CPU has no fast arithmetic for it; training in float32"


def test_the_line_comes_before_data_are_read(tmp_path, other_precision, cpu_without_bfloat16, monkeypatch, caplog):
    class Stopped(Exception): ...

    def stop(*_):
        raise Stopped

    monkeypatch.setattr(loop.TASKS["paraphrase"], "load", stop)
    with pytest.raises(Stopped):
        train(make_recipe(mixed_precision="bf16"), tmp_path, dataset=make_pairs())
    assert "training in float32" in caplog.text


def test_the_launcher_s_precision_is_checked_too(tmp_path, other_precision, cpu_without_bfloat16, monkeypatch, caplog):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    summary = train(make_recipe(max_steps=1), tmp_path, dataset=make_pairs())
    assert summary["mixed_precision"] == "no" and "`mixed_precision: bf16`" in caplog.text


def test_a_run_in_float32_goes_on_in_float16(tmp_path, other_precision, monkeypatch):
    """Its checkpoint has no scale of gradients."""
    monkeypatch.setattr(loop, "runs_lstm", lambda dtype: False)
    recipe = make_recipe(max_steps=4, save_steps=2, mixed_precision="fp16")
    train(recipe, tmp_path, dataset=make_pairs())
    other_precision()
    monkeypatch.setattr(loop, "runs_lstm", lambda dtype: True)
    assert train(recipe, tmp_path, dataset=make_pairs(), resume=True)["mixed_precision"] == "fp16"


def test_the_trainer_of_transformers_trains_in_bf16(tmp_path, other_precision, cpu_without_bfloat16):
    train_with_transformers(tmp_path)


def train_with_transformers(folder):
    model, ids = tiny_residual_lstm(), torch.tensor([5, 6, 7, 2])
    rows = [{"input_ids": ids, "labels": ids}] * 8
    arguments = Seq2SeqTrainingArguments(
        folder, bf16=True, use_cpu=True, max_steps=2, report_to=[], save_strategy="no"
    )
    assert math.isfinite(Seq2SeqTrainer(model, arguments, train_dataset=rows).train().training_loss)


FOR_REAL = """
import sys, torch
from tests.generation.paraphrasers import tiny_residual_lstm
from tests.training.test_precision import EVEN, train_shortly, train_with_transformers
assert train_shortly("residual-lstm-mscoco-small", sys.argv[1] + "/run")["mixed_precision"] == sys.argv[2]
from accelerate.state import AcceleratorState
AcceleratorState._reset_state(reset_partial_state=True)
train_with_transformers(sys.argv[1] + "/trainer")
model, ids = tiny_residual_lstm(), torch.tensor([[5, 6, 7, 2]])
plain = model.generate(ids, num_beams=2, max_new_tokens=4)
with torch.autocast("cpu", torch.bfloat16):
    assert model.generate(ids, num_beams=2, max_new_tokens=4).shape == plain.shape
from hf_paraphrase.models.layers.precision import fast_dtype
model.to(fast_dtype("cpu")).generate(ids, num_beams=2, max_new_tokens=4)
print(model.dtype)
"""


def test_the_same_where_onednn_itself_has_no_bfloat16(tmp_path):
    """oneDNN reads the limit once in a process; it knows it on x86 alone, elsewhere it may have the kernel."""
    variables = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    is_x86 = "AVX" in torch.backends.cpu.get_cpu_capability()
    expected = ("no", "torch.float32") if is_x86 else ("bf16", "torch.bfloat16")
    run = [sys.executable, "-c", FOR_REAL, str(tmp_path), expected[0]]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(run, cwd=root, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == expected[1]
    assert done.stderr.count("training in float32") == int(is_x86)
