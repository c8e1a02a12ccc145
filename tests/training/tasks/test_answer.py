"""Fine-tuning language models: the loss is that of the answer, and the run is asked by the prompt that it learnt."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.prompts import load_prompt
from hf_paraphrase.hub.files import find_files
from hf_paraphrase.training.arguments import AnswerConfig
from hf_paraphrase.training.loop import clear_output, train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import AnswerTask
from tests.generation.language_models import CHAT, PROMPT, byte_tokenizer, tiny_llama
from tests.models.tiny import save
from tests.training.tiny_runs import last_weights, make_pairs


@pytest.fixture
def fields(tmp_path: Path) -> dict:
    PROMPT.save(tmp_path / "mine.yaml")
    pretrained = save(tiny_llama(), tmp_path / "pretrained", byte_tokenizer())
    return {"task": "answer", "dataset": "words", "pretrained": pretrained, "prompt": str(tmp_path / "mine.yaml")}


def make_recipe(fields: dict, **others) -> Recipe:
    usual = {"num_train_epochs": 1, "train_batch_size": 10, "learning_rate": 0.01, "disable_tqdm": True}
    return Recipe("tiny", {"model_type": "llama"}, {}, AnswerConfig(**{**fields, **usual, **others}))


def test_the_loss_is_that_of_the_answer_alone(fields: dict) -> None:
    task, model = AnswerTask(make_recipe(fields).training), tiny_llama()
    pairs = make_pairs(train=3, validation=2)
    data = task.encode(pairs, task.make_tokenizer(pairs["train"], 0))
    rows = data.splits["train"]
    loss, _ = task.loss_sums(model, task.make_collator(data.tokenizer)(task.features(rows, [0, 1, 2], 0)), data)
    expected = 0.0
    for row in rows:
        logits = model(torch.tensor([row["input_ids"] + row["labels"]])).logits[0].log_softmax(-1)
        expected -= sum(
            logits[len(row["input_ids"]) + place - 1, token].item() for place, token in enumerate(row["labels"])
        )
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert task.counts(rows).sum() == sum(len(target) + 1 for target in pairs["train"]["target"])


def test_rows_that_do_not_fit_are_left_out(fields: dict, caplog: pytest.LogCaptureFixture) -> None:
    pairs = make_pairs(train=20, validation=5)
    task = AnswerTask(make_recipe(fields, max_target_length=12).training)
    encoded = task.encode(pairs, byte_tokenizer()).splits["train"]
    assert len(encoded) == sum(len(target) < 12 for target in pairs["train"]["target"]) < 20
    assert "max_target_length" in caplog.text


def test_a_run_lowers_the_loss_goes_on_exactly_and_is_asked_by_its_prompt(fields: dict, tmp_path: Path) -> None:
    pairs, recipe = make_pairs(train=20, validation=5), make_recipe(fields, num_train_epochs=2)
    summary = train(recipe, tmp_path / "whole", dataset=pairs)
    losses = [entry["eval_loss"] for entry in summary["evaluations"]]
    assert losses[-1] < losses[0]
    train(make_recipe(fields, num_train_epochs=2, max_train_time=1e-9), tmp_path / "parts", dataset=pairs)
    train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    expected, found = (last_weights(tmp_path / name) for name in ("whole", "parts"))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert Paraphraser.from_pretrained(tmp_path / "whole").writer.prompt == load_prompt(fields["prompt"])


def test_a_run_has_all_templates_of_its_chat_and_leaves_none(fields: dict, tmp_path: Path) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = {"default": CHAT, "short": CHAT}
    tokenizer.save_pretrained(fields["pretrained"])
    train(make_recipe(fields), tmp_path / "run", dataset=make_pairs(train=10, validation=2))
    templates = {"chat_template.jinja", "additional_chat_templates/short.jinja"}
    assert templates | {"prompt.yaml"} <= find_files(tmp_path / "run").keys()
    clear_output(tmp_path / "run")
    assert list((tmp_path / "run").glob("*")) == []


def test_what_the_task_lacks_is_refused(fields: dict) -> None:
    with pytest.raises(InputError, match="label_smoothing_factor"):
        make_recipe(fields, label_smoothing_factor=0.1)
