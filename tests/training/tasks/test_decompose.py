from __future__ import annotations

import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks.decompose import DecomposeConfig, DecomposeTask, label_levels

from ..tiny_runs import assert_equal, last_weights, make_pairs, send_after

# Eight things asked for by the same two templates.
THINGS = ["paris", "rome", "tea", "oslo", "bread", "soup", "milk", "jazz"]
ROWS = [(f"where is {thing} ?", f"how to find {thing} ?") for thing in THINGS]


def task_of(**fields) -> DecomposeTask:
    return DecomposeTask(DecomposeConfig(dataset="none", **fields))


def dataset_of(rows) -> Dataset:
    return Dataset.from_dict({"source": [source for source, _ in rows], "target": [target for _, target in rows]})


def encode(task, tokenizer):
    return task.encode(DatasetDict(train=dataset_of(ROWS), validation=dataset_of(ROWS[:2])), tokenizer)


def make_recipe(**fields) -> Recipe:
    model = {
        "model_type": "dnpg",
        "vocab_size": 20,
        "hidden_size": 8,
        "num_layers": 1,
        "sentence_layers": 1,
        "num_heads": 2,
        "intermediate_size": 8,
        "separator_size": 4,
        "aggregator_size": 4,
    }
    training = DecomposeConfig(
        dataset="reversed_words", num_train_epochs=2, train_batch_size=9, learning_rate=0.02, disable_tqdm=True
    )
    return Recipe("tiny", model, {"max_new_tokens": 8}, training).override(fields)


def test_weak_labels_tell_what_is_asked_from_the_question():
    tokenizer = train_word_tokenizer([text for row in ROWS for text in row], 40)
    data = encode(task_of(max_phrase_frequency=0.2), tokenizer)
    assert data.splits["train"]["source_level_labels"] == [[1, 1, 0, 1, -100]] * len(ROWS)
    assert data.splits["train"]["target_level_labels"] == [[1, 1, 1, 0, 1, 1]] * len(ROWS)
    assert "source_level_labels" not in data.splits["validation"].column_names


@pytest.mark.parametrize(
    ("max_frequency", "min_strength", "expected"),
    [(1.0, 0.01, [0, 0]), (0.5, 0.01, [1, 0]), (1.0, 0.999, [0, 1])],
)
def test_a_label_needs_a_sure_link_or_a_copy_of_words_that_are_not_frequent(max_frequency, min_strength, expected):
    sources, targets = [[5, 6], [5, 8], [5, 10]], [[5, 7], [5, 9], [5, 11]]
    (first, *_), (target, *_) = label_levels(sources, targets, {2}, 20, max_frequency, min_strength)
    assert first == target == expected


def test_the_loss_has_the_labels_of_both_sides_with_their_weight():
    tokenizer = train_word_tokenizer([text for row in ROWS for text in row], 40)
    task = task_of(max_phrase_frequency=0.2, weak_label_weight=0.5)
    data = encode(task, tokenizer)
    model = task.make_model(make_recipe(dropout=0.0).make_config(tokenizer), data).train()
    batch = task.make_collator(tokenizer)(task.features(data.splits["train"], [0, 3], 0))
    plain = {name: tensor for name, tensor in batch.items() if "level" not in name}
    batch = task.prepare_batch(batch, 0, 20)
    assert batch.keys() - plain.keys() - {"weak_label_weight"} == {"source_level_labels", "target_level_labels"}
    torch.manual_seed(0)
    loss, reported = task.loss_sums(model, batch, data)
    torch.manual_seed(0)
    outputs = model(**plain, output_levels=True)
    torch.testing.assert_close(reported, outputs.loss * 12)
    extra = 0.0
    for row in range(2):
        for side in ("source", "target"):
            scores = getattr(outputs, f"{side}_level_logits")[row].log_softmax(-1)
            labels = batch[f"{side}_level_labels"][row].tolist()
            extra -= sum(score[label] for score, label in zip(scores, labels, strict=True) if label >= 0)
    torch.testing.assert_close(loss, reported + 0.5 * extra)
    torch.manual_seed(0)
    torch.testing.assert_close(task.loss_sums(model, task.prepare_batch(batch, 10, 20), data)[0], reported)
    model.eval()
    del batch["weak_label_weight"]  # as in validation
    assert task.loss_sums(model, batch, data)[0] == task.loss_sums(model, plain, data)[0]


def test_the_weight_falls_in_a_line():
    task = task_of(weak_label_weight=2.0, weak_label_share=0.5)
    weights = [task.prepare_batch({}, step, 100)["weak_label_weight"] for step in (0, 10, 25, 50, 99)]
    assert weights == pytest.approx([2.0, 1.6, 1.0, 0.0, 0.0])


def test_words_outside_the_vocabulary_are_numbered_by_row():
    tokenizer = train_word_tokenizer(["where is how to find ?"], 40)
    task = task_of(copy_unknown_words=True, max_phrase_frequency=0.2)
    data = encode(task, tokenizer)
    batch = task.make_collator(tokenizer)(task.features(data.splits["train"], [0, 1], 0))
    assert batch["input_ids"][:, 2].tolist() == batch["labels"][:, 3].tolist() == [len(tokenizer)] * 2
    row = {"input_ids": [4, 90, 70, 90], "labels": [70, 55, 90]}
    collated = task.make_collator(tokenizer)([row])
    n = len(tokenizer)
    assert collated["input_ids"].tolist() == [[4, n, n + 1, n]]
    assert collated["labels"].tolist() == [[n + 1, tokenizer.unk_token_id, n]]


def test_an_interrupted_run_goes_on_alike(tmp_path, monkeypatch):
    pairs, recipe = make_pairs(), make_recipe()
    train(recipe, tmp_path / "whole", dataset=pairs)
    send_after(monkeypatch, 4)
    with pytest.raises(TrainingInterrupted):
        train(recipe, tmp_path / "parts", dataset=pairs)
    train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


def test_a_run_whose_weak_labels_fade_cannot_be_made_longer(tmp_path):
    """Its weight would rise again where it goes on."""
    pairs = make_pairs()
    train(make_recipe(lr_scheduler_type="constant"), tmp_path, dataset=pairs)
    with pytest.raises(InputError, match="began with `num_train_epochs: 2`, not 4"):
        train(make_recipe(lr_scheduler_type="constant", num_train_epochs=4), tmp_path, dataset=pairs, resume=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weak_label_weight": -1.0}, "`weak_label_weight` must be at least 0"),
        ({"weak_label_share": 0.0}, "`weak_label_share` must be greater than 0 and at most 1"),
        ({"max_phrase_frequency": 1.5}, "`max_phrase_frequency`"),
        ({"min_link_strength": 0.0}, "`min_link_strength`"),
        ({"label_smoothing_factor": 0.1}, "`label_smoothing_factor` must be 0"),
        ({"objective": "rbm", "reward": "rouge", "pretrained": "x"}, "is for `task: paraphrase`"),
    ],
)
def test_impossible_settings_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        task_of(**fields)


def test_other_models_are_refused():
    tokenizer = train_word_tokenizer(["a b"], 10)
    task = task_of(copy_unknown_words=True)
    with pytest.raises(InputError, match="residual_lstm` knows no levels"):
        task.make_model(Recipe("r", {"model_type": "residual_lstm"}, {}, task.training).make_config(tokenizer), None)
    with pytest.raises(InputError, match="set `copy` in its configuration"):
        task.make_model(make_recipe(copy=False).make_config(tokenizer), None)
