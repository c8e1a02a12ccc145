from __future__ import annotations

import logging
from collections import Counter

import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_paraphrase.errors import InputError
from hf_paraphrase.retrieval import ParaphraseRetriever
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.signals import TrainingInterrupted
from hf_paraphrase.training.tasks.edit import EditConfig, EditTask

from ..tiny_runs import assert_equal, last_weights, make_pairs, send_after

ROWS = [("a b c", "c b a"), ("a b d", "d b a"), ("a b c", "b c a"), ("x y", "y x"), ("x z", "z x"), (" ", "a")]


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(["a b c d x y z"], 20)


def task_of(**fields) -> EditTask:
    return EditTask(EditConfig(dataset="none", **fields))


def dataset_of(rows) -> Dataset:
    return Dataset.from_dict({"source": [source for source, _ in rows], "target": [target for _, target in rows]})


def encode(task, tokenizer, rows=ROWS):
    return task.encode(DatasetDict(train=dataset_of(rows), validation=dataset_of([("a b y", "y b a")])), tokenizer)


def texts_of(tokenizer, example) -> tuple[str, str]:
    return tuple(
        tokenizer.decode(example[f"retrieved_{side}_ids"], skip_special_tokens=True) for side in ("source", "target")
    )


def test_neighbours_are_the_nearest_other_pairs(tokenizer, caplog):
    task = task_of(num_neighbors=2)
    with caplog.at_level(logging.WARNING):
        encoded = encode(task, tokenizer)
    assert "left out 1 of 6 pairs" in caplog.text
    assert len(encoded["train"]) == 5
    assert tokenizer.batch_decode(encoded["train"][0]["retrieved_target_ids"], skip_special_tokens=True) == [
        "b c a",
        "d b a",
    ]
    (example,) = task.features(encoded["validation"], [0], None)
    assert texts_of(tokenizer, example) == ("a b c", "c b a")


def test_neighbours_with_a_sentence_of_the_example_can_be_left_out(tokenizer):
    task = task_of(num_neighbors=1, exclude_shared_sentences=True)
    (example,) = task.features(encode(task, tokenizer)["train"], [0], 0)
    assert texts_of(tokenizer, example) == ("a b d", "d b a")


def test_an_example_without_neighbours_has_itself(tokenizer):
    task = task_of(num_neighbors=1, exclude_shared_sentences=True)
    (example,) = task.features(encode(task, tokenizer, [("a b", "b a"), ("a b", "a")])["train"], [0], 0)
    assert texts_of(tokenizer, example) == ("a b", "b a")


def test_pairs_are_drawn_uniformly_from_k_neighbours_and_the_example_repeated(tokenizer):
    task = task_of(num_neighbors=3, num_self_pairs=2)
    encoded = encode(task, tokenizer)["train"]
    epochs = 3000
    drawn = Counter(texts_of(tokenizer, task.features(encoded, [0], epoch)[0]) for epoch in range(epochs))
    assert len(drawn) == 4
    for pair, count in drawn.items():
        expected = (2 if pair == ("a b c", "c b a") else 1) / 5
        assert abs(count / epochs - expected) < 0.035, pair


def test_draws_follow_from_seed_epoch_and_row_alone(tokenizer):
    tasks = [task_of(num_neighbors=4, num_self_pairs=1, seed=seed) for seed in (1, 1, 2)]
    encoded = encode(tasks[0], tokenizer)["train"]

    def draw(task, rows):
        return [task.features(encoded, rows, epoch) for epoch in range(20)]

    whole = draw(tasks[0], [0, 1, 2, 3, 4])
    assert draw(tasks[1], [4, 2]) == [[features[4], features[2]] for features in whole]
    assert draw(tasks[2], [0, 1, 2, 3, 4]) != whole
    assert any(first != second for first, second in zip(whole, whole[1:], strict=False))


def test_batches_hold_the_pair_padded(tokenizer):
    task = task_of(num_neighbors=1)
    encoded = encode(task, tokenizer)["train"]
    batch = task.make_collator(tokenizer)(task.features(encoded, [0, 3], 0))
    assert set(batch) == {
        *("input_ids", "attention_mask", "labels"),
        *("retrieved_source_ids", "retrieved_source_mask", "retrieved_target_ids", "retrieved_target_mask"),
    }
    assert batch["retrieved_source_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert torch.equal(batch["retrieved_source_mask"] == 0, batch["retrieved_source_ids"] == 0)


def test_words_outside_the_vocabulary_are_numbered_in_each_pair(tokenizer):
    task = task_of(num_neighbors=1, copy_unknown_words=True)
    rows = [("a basel", "b basel geneva lake"), ("x y", "y"), ("a zug basel", "zug geneva"), ("x z", "bern")]
    encoded = encode(task, tokenizer, rows)["train"]
    batch = task.make_collator(tokenizer)(task.features(encoded, [0, 3], 0))
    first = len(tokenizer)
    a, b, x, y = tokenizer("a b x y")["input_ids"][:4]
    # The pair of row 0 is (a zug basel, zug geneva): zug, basel and geneva in this order; lake is not in it.
    assert batch["retrieved_source_ids"].tolist() == [[a, first, first + 1, 2], [x, y, 2, 0]]
    assert batch["retrieved_target_ids"].tolist() == [[first, first + 2, 2], [y, 2, 0]]
    assert batch["labels"].tolist() == [[b, first + 1, first + 2, 3, 2], [3, 2, -100, -100, -100]]
    assert batch["input_ids"].tolist()[0] == [a, 3, 2]


def test_an_example_without_neighbours_copies_from_itself(tokenizer):
    task = task_of(num_neighbors=1, copy_unknown_words=True, exclude_shared_sentences=True)
    encoded = encode(task, tokenizer, [("a basel", "bern a"), ("a basel", "b")])["train"]
    batch = task.make_collator(tokenizer)(task.features(encoded, [0], 0))
    assert batch["retrieved_target_ids"].tolist() == batch["labels"].tolist()
    assert batch["retrieved_source_ids"][0, 1] == len(tokenizer) and batch["labels"][0, 0] == len(tokenizer) + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_neighbors": 0}, "`num_neighbors` must be at least 1"),
        ({"num_neighbors": 2, "num_self_pairs": 2}, r"below `num_neighbors` \(2\)"),
        ({"num_self_pairs": -1}, "`num_self_pairs` must be at least 0"),
        (
            {"copy_unknown_words": True, "objective": "rbm", "reward": "rouge", "pretrained": "p"},
            "`copy_unknown_words` must be false",
        ),
    ],
)
def test_impossible_settings_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        task_of(**fields)


def make_recipe(**fields) -> Recipe:
    model = {"model_type": "fset", "vocab_size": 20, "hidden_size": 8, "num_layers": 1, "num_heads": 2}
    model |= {"provider_layers": 1, "provider_heads": 2, "micro_edit_size": 4, "edit_vector_size": 8}
    training = EditConfig(
        dataset="reversed_words",
        num_neighbors=3,
        num_self_pairs=1,
        num_train_epochs=2,
        train_batch_size=9,
        learning_rate=0.02,
        disable_tqdm=True,
    )
    return Recipe("tiny", model, {"num_beams": 2, "max_new_tokens": 8}, training).override(fields)


def test_a_resumed_run_draws_the_same_pairs_and_ends_the_same(tmp_path, monkeypatch):
    pairs, recipe = make_pairs(), make_recipe()
    whole = train(recipe, tmp_path / "whole", dataset=pairs)
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        send_after(patch, 8)
        train(recipe, tmp_path / "resumed", dataset=pairs)
    summary = train(recipe, tmp_path / "resumed", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "resumed"), last_weights(tmp_path / "whole"))
    assert summary["last"]["eval_loss"] == whole["last"]["eval_loss"]


COPYING = {"model_type": "edit_lstm", "vocab_size": 9, "copy": True, "attention": "additive"}
COPYING |= {"embedding_size": 8, "hidden_size": 8, "num_layers": 1}


def test_a_copying_model_learns_and_resumes(tmp_path, monkeypatch):
    recipe = Recipe("tiny", COPYING, {"num_beams": 2}, make_recipe(copy_unknown_words=True, num_self_pairs=0).training)
    summary = train(recipe, tmp_path / "copy", dataset=make_pairs())
    assert summary["vocab_size"] == 9
    assert summary["last"]["eval_loss"] < summary["evaluations"][0]["eval_loss"]


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        ({"model_type": "fset"}, {"copy_unknown_words": True}, "is for a model that copies"),
        (
            {"model_type": "edit_lstm", "copy": True, "attention": "additive"},
            {"label_smoothing_factor": 0.1},
            "`label_smoothing_factor` must be 0",
        ),
    ],
)
def test_what_does_not_go_with_the_model_is_refused(tmp_path, model, fields, message):
    recipe = Recipe("tiny", {**model, "vocab_size": 20}, {}, make_recipe(**fields).training)
    with pytest.raises(InputError, match=message):
        train(recipe, tmp_path, dataset=make_pairs())


def test_the_retriever_is_saved_with_the_model(tmp_path):
    pairs = make_pairs()
    train(make_recipe(max_steps=1), tmp_path, dataset=pairs)
    retriever = ParaphraseRetriever.from_pretrained(tmp_path / "retriever")
    assert len(retriever) <= len(pairs["train"])
    train(make_recipe(max_steps=1), tmp_path, dataset=pairs, overwrite=True)


@pytest.mark.parametrize("model", [make_recipe().model_config, COPYING], ids=["fset", "copying"])
def test_a_reward_fine_tunes_with_the_pairs(tmp_path, model):
    def recipe(**fields):
        return Recipe("tiny", model, {"max_new_tokens": 8}, make_recipe(**fields).training)

    pairs = make_pairs()
    train(recipe(max_steps=1), tmp_path / "begun", dataset=pairs)
    fields = {
        "objective": "rbm",
        "reward": "rouge",
        "cross_entropy_weight": 0.5,
        "pretrained": str(tmp_path / "begun"),
    }
    summary = train(recipe(max_steps=2, **fields), tmp_path / "rbm", dataset=pairs)
    assert 0 <= summary["best"]["eval_reward"] <= 1
    begun, ended = last_weights(tmp_path / "begun"), last_weights(tmp_path / "rbm")
    assert any(not torch.equal(weight, begun[name]) for name, weight in ended.items())


def test_models_that_read_no_pairs_are_refused(tmp_path):
    recipe = make_recipe()
    recipe = Recipe("tiny", {"model_type": "residual_lstm", "vocab_size": 20}, {}, recipe.training)
    with pytest.raises(InputError, match="`model_type: residual_lstm` reads no retrieved pairs"):
        train(recipe, tmp_path, dataset=make_pairs())
