from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, T5Config, T5ForConditionalGeneration

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe, load_recipe

from .tiny_runs import assert_equal, last_weights, make_pairs, make_recipe


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


def read_log(output_dir) -> list[dict]:
    return [json.loads(line) for line in (output_dir / "log_history.jsonl").read_text().splitlines()]


def test_run_leaves_a_usable_model_and_says_how_it_was_made(tmp_path, pairs):
    recipe = make_recipe(eval_strategy="steps", eval_steps=3)
    summary = train(recipe, tmp_path, dataset=pairs)
    assert summary == json.loads((tmp_path / "training_summary.json").read_text())
    assert (summary["steps"], summary["epochs"], summary["seed"], summary["processes"]) == (12, 2.0, 42, 1)
    assert (summary["train_pairs"], summary["validation_pairs"]) == (50, 11)
    assert summary["recipe"]["training"]["learning_rate"] == 0.02
    assert load_recipe(tmp_path / "recipe").training == recipe.training

    log = read_log(tmp_path)
    evaluations = [entry for entry in log if "eval_loss" in entry]
    assert summary["evaluations"] == evaluations
    assert [entry["step"] for entry in evaluations] == [3, 6, 9, 12]
    assert [entry["step"] for entry in log if "loss" in entry] == [2, 4, 6, 8, 10, 12]
    assert summary["best"] == min(evaluations, key=lambda entry: entry["eval_loss"])

    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path), AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert model.config.vocab_size == len(tokenizer) == summary["vocab_size"] == 16
    assert (model.generation_config.num_beams, model.generation_config.decoder_start_token_id) == (2, 1)
    assert summary["num_parameters"] == model.num_parameters()
    assert model.generate(**tokenizer("w1 w2", return_tensors="pt")).shape[0] == 1
    best = tmp_path / "checkpoints" / f"best-{summary['best']['step']:08d}"
    assert_equal(load_file(best / "model.safetensors"), load_file(tmp_path / "model.safetensors"))


def test_validation_loss_is_the_mean_over_all_tokens(tmp_path, pairs):
    summary = train(make_recipe(max_steps=2), tmp_path, dataset=pairs)
    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path), AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    loss, tokens = 0.0, 0
    for row in pairs["validation"]:
        labels = tokenizer(row["target"], return_tensors="pt")["input_ids"]
        loss += model(**tokenizer(row["source"], return_tensors="pt"), labels=labels).loss.item() * labels.numel()
        tokens += labels.numel()
    assert summary["last"]["eval_loss"] == pytest.approx(loss / tokens, rel=1e-5)
    assert summary["last"]["eval_perplexity"] == pytest.approx(torch.tensor(loss / tokens).exp().item(), rel=1e-5)


def test_losses_follow_a_known_path(tmp_path, pairs):
    """A change in order, loss, clipping, schedule or optimizer shows here."""
    options = {"dropout": 0.0, "initializer_range": 0.08}
    recipe = make_recipe(**options, logging_steps=3, warmup_steps=2, weight_decay=0.01, num_train_epochs=4)
    train(recipe, tmp_path, dataset=pairs)
    losses = [entry["loss"] for entry in read_log(tmp_path) if "loss" in entry]
    path = [2.77547, 2.74323, 2.68704, 2.61822, 2.51585, 2.57744, 2.55241, 2.44972]
    assert losses == pytest.approx(path, rel=1e-3)


def test_a_run_in_double_precision_stays_in_it(tmp_path, pairs):
    """Its losses have digits that single precision does not."""
    recipe = make_recipe(dtype="float64", dropout=0.0, label_smoothing_factor=0.1, logging_steps=1, max_steps=3)
    summary = train(recipe, tmp_path, dataset=pairs)
    assert {tensor.dtype for tensor in last_weights(tmp_path).values()} == {torch.float64}
    losses = [summary["last"]["eval_loss"], *(entry["loss"] for entry in read_log(tmp_path) if "loss" in entry)]
    assert not any(loss == torch.tensor(loss, dtype=torch.float32).item() for loss in losses)


def test_the_task_is_learnt(tmp_path, pairs):
    model = {"dropout": 0.0, "hidden_size": 32, "embedding_size": 32, "attention": "additive"}
    recipe = make_recipe(**model, num_train_epochs=40, eval_strategy="steps", eval_steps=120)
    summary = train(recipe, tmp_path, dataset=pairs)
    before, after = (entry["train_perplexity"] for entry in summary["evaluations"])
    assert after < 2 < before


@pytest.mark.parametrize("optim", ["sgd", "adamw"])
def test_accumulated_batches_train_as_one_larger(tmp_path, pairs, optim):
    fields = {"dropout": 0.0, "optim": optim, "label_smoothing_factor": 0.1}
    train(make_recipe(train_batch_size=8, **fields), tmp_path / "whole", dataset=pairs)
    accumulated = make_recipe(train_batch_size=4, gradient_accumulation_steps=2, **fields)
    train(accumulated, tmp_path / "parts", dataset=pairs)
    parts = last_weights(tmp_path / "parts")
    for name, tensor in last_weights(tmp_path / "whole").items():
        torch.testing.assert_close(parts[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("accumulated", [1, 5])
def test_loss_of_rows_is_that_of_tokens_times_the_tokens_of_a_row(tmp_path, pairs, accumulated):
    """One step of SGD on all pairs; the log stays in nats per token."""
    fields = {"dropout": 0.0, "optim": "sgd", "max_steps": 1, "max_grad_norm": None, "logging_steps": 1}
    tokens = sum(len(target.split()) + 1 for target in pairs["train"]["target"])
    recipes = {
        "tokens": make_recipe(train_batch_size=50, learning_rate=0.02 * tokens / 50, **fields),
        "rows": make_recipe(
            train_batch_size=50 // accumulated,
            gradient_accumulation_steps=accumulated,
            learning_rate=0.02,
            loss_normalization="rows",
            **fields,
        ),
    }
    for name, recipe in recipes.items():
        train(recipe, tmp_path / name, dataset=pairs)
    rows = last_weights(tmp_path / "rows")
    for name, tensor in last_weights(tmp_path / "tokens").items():
        torch.testing.assert_close(rows[name], tensor)
    by_token, by_row = (read_log(tmp_path / name)[0] for name in recipes)
    assert by_row["loss"] == pytest.approx(by_token["loss"])
    assert by_row["grad_norm"] == pytest.approx(by_token["grad_norm"] * tokens / 50)


def test_validating_does_not_change_the_training(tmp_path, pairs):
    train(make_recipe(max_steps=4), tmp_path / "seldom", dataset=pairs)
    train(make_recipe(max_steps=4, eval_strategy="steps", eval_steps=1), tmp_path / "often", dataset=pairs)
    assert_equal(last_weights(tmp_path / "seldom"), last_weights(tmp_path / "often"))


def test_seed_decides(tmp_path, pairs):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        train(make_recipe(seed=seed, max_steps=2), tmp_path / name, dataset=pairs)
    one, again, two = (last_weights(tmp_path / name) for name in ("one", "again", "two"))
    assert_equal(one, again)
    assert not torch.equal(one["lm_head.weight"], two["lm_head.weight"])


def test_batches_keep_the_token_budget(tmp_path, pairs):
    summary = train(make_recipe(train_batch_size=None, max_tokens_per_batch=60, max_steps=3), tmp_path, dataset=pairs)
    assert summary["steps"] == 3
    assert summary["epochs"] < 0.3


def test_out_of_time_ends_in_good_order(tmp_path, pairs):
    summary = train(make_recipe(max_train_time=1e-9), tmp_path, dataset=pairs)
    assert summary["steps"] == 1
    assert summary["last"]["step"] == 1
    AutoModelForSeq2SeqLM.from_pretrained(tmp_path)


def test_patience_ends_a_run_that_gets_no_better(tmp_path, pairs):
    # At this rate the first validation stays the best.
    recipe = make_recipe(
        learning_rate=5.0, early_stopping_patience=2, eval_strategy="steps", eval_steps=1, max_steps=50
    )
    summary = train(recipe, tmp_path, dataset=pairs)
    assert summary["steps"] == summary["best"]["step"] + 2 < 50


BERT = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
BERT["intermediate_size"] = 8
SEQ2SEQ = [
    {"model_type": "t5", "d_model": 8, "d_ff": 8, "d_kv": 4, "num_layers": 1, "num_heads": 2},
    {
        "model_type": "bart",
        "d_model": 8,
        **{f"{side}_{size}": 1 for side in ("encoder", "decoder") for size in ("layers", "attention_heads")},
        **{f"{side}_ffn_dim": 8 for side in ("encoder", "decoder")},
    },
    {
        "model_type": "encoder-decoder",
        "encoder": BERT,
        "decoder": {**BERT, "is_decoder": True, "add_cross_attention": True},
    },
]


@pytest.mark.parametrize("model", SEQ2SEQ, ids=lambda model: model["model_type"])
def test_any_sequence_to_sequence_model_trains(tmp_path, pairs, model):
    """Whatever special tokens its config lacks are the tokenizer's."""
    recipe = replace(make_recipe(max_steps=2), model_config=model)
    summary = train(recipe, tmp_path, dataset=pairs)
    assert (summary["model_type"], summary["vocab_size"]) == (model["model_type"], 16)
    trained, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert trained.config.decoder_start_token_id == tokenizer.bos_token_id
    assert trained.generate(**tokenizer("w1 w2", return_tensors="pt"))[0, 0] == tokenizer.bos_token_id


def test_files_that_transformers_saved_are_a_recipe(tmp_path, pairs):
    """They have derived fields, and fields that no config class declares."""
    config = T5Config(vocab_size=20, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2, eos_token_id=2)
    config.decoder_start_token_id = 0
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    assert "_from_model_config" in json.loads((tmp_path / "t5" / "generation_config.json").read_text())
    (tmp_path / "t5" / "training.yaml").write_text("dataset: reversed_words\nmax_steps: 1\ndisable_tqdm: true\n")
    train(load_recipe(tmp_path / "t5"), tmp_path / "run", dataset=pairs)
    trained = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert (trained.config.d_model, trained.config.decoder_start_token_id) == (8, 0)
    assert trained.generation_config.decoder_start_token_id == 0


def test_a_pretrained_model_keeps_its_own_config(tmp_path, pairs):
    """The recipe names the architecture alone; a vocabulary larger than the tokenizer's stays too."""
    begun = replace(make_recipe(max_steps=1, num_beams=3), model_config=SEQ2SEQ[0])
    train(begun, tmp_path / "begun", dataset=pairs)
    checkpoint = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "begun")
    checkpoint.resize_token_embeddings(24)
    checkpoint.save_pretrained(tmp_path / "begun")
    training = replace(begun.training, pretrained=str(tmp_path / "begun"), learning_rate=1e-12)
    recipe = Recipe("tuned", {"model_type": "t5", "dropout_rate": 0.0}, {"max_new_tokens": 5}, training)
    train(recipe, tmp_path / "tuned", dataset=pairs)
    tuned = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "tuned")
    assert (tuned.config.d_model, tuned.config.vocab_size, tuned.config.dropout_rate) == (8, 24, 0)
    assert (tuned.generation_config.num_beams, tuned.generation_config.max_new_tokens) == (3, 5)
    for name, weight in tuned.state_dict().items():
        torch.testing.assert_close(weight, checkpoint.state_dict()[name])


def test_trackers_get_the_log(tmp_path, pairs):
    pytest.importorskip("tensorboard")
    train(make_recipe(report_to="[tensorboard]", max_steps=2), tmp_path, dataset=pairs)
    assert list((tmp_path / "trackers").rglob("events.out.tfevents.*"))


def test_missing_tracker_is_an_error(tmp_path, pairs):
    with pytest.raises(InputError, match="`report_to`: the tracker tensorbord is not installed"):
        train(make_recipe(report_to="[tensorbord]"), tmp_path, dataset=pairs)
    assert not any(tmp_path.iterdir())


def test_special_tokens_have_to_match(tmp_path, pairs):
    with pytest.raises(InputError, match="`eos_token_id: 3`, but it is 2 in the tokenizer"):
        train(make_recipe(eos_token_id=3), tmp_path, dataset=pairs)


@pytest.mark.parametrize("fields", [{"optim": "sgd", "learning_rate": 1e30, "max_grad_norm": None}])
def test_divergence_stops_and_keeps_the_last_checkpoint(tmp_path, pairs, fields):
    recipe = make_recipe(lr_scheduler_type="constant", save_steps=1, **fields)
    with pytest.raises(InputError, match=r"diverged after step \d: .*1e\+30.*lower `learning_rate`.*last-0000000\d"):
        train(recipe, tmp_path, dataset=pairs)
    assert all(tensor.isfinite().all() for tensor in last_weights(tmp_path).values())
    assert not (tmp_path / "model.safetensors").exists()
