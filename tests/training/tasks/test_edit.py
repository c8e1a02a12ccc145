from __future__ import annotations

import logging
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset, DatasetDict

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.retrieval import ParaphraseRetriever
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.losses import Validation
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import edit
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
        encoded = encode(task, tokenizer).splits
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
    (example,) = task.features(encode(task, tokenizer).splits["train"], [0], 0)
    assert texts_of(tokenizer, example) == ("a b d", "d b a")


def test_an_example_without_neighbours_has_itself(tokenizer):
    task = task_of(num_neighbors=1, exclude_shared_sentences=True)
    (example,) = task.features(encode(task, tokenizer, [("a b", "b a"), ("a b", "a")]).splits["train"], [0], 0)
    assert texts_of(tokenizer, example) == ("a b", "b a")


@pytest.mark.parametrize(("k", "share"), [(3, 0.4), (1, 4 / 9), (1, 0.0), (3, 0.0)])
def test_the_example_has_its_share_of_the_draws_and_the_neighbours_the_rest(tokenizer, k, share):
    """Equation 1 and appendix A.1; one neighbour leaves room for the example too."""
    task = task_of(num_neighbors=k, self_pair_share=share)
    encoded = encode(task, tokenizer).splits["train"]
    epochs = 3000
    drawn = Counter(texts_of(tokenizer, task.features(encoded, [0], epoch)[0]) for epoch in range(epochs))
    assert len(drawn) == k + (share > 0)
    for pair, count in drawn.items():
        expected = share if pair == ("a b c", "c b a") else (1 - share) / k
        assert abs(count / epochs - expected) < 0.035, pair


def test_the_share_of_the_example_falls_to_nothing_in_the_epochs_that_it_is_given(tokenizer):
    task = task_of(num_neighbors=2, self_pair_share=0.8, self_pair_annealing_epochs=4)
    rows = [("a b c", "c b a"), ("a b d", "d b a"), ("a b e", "e b a")]
    encoded = encode(task, tokenizer, rows).splits["train"].select([0] * 2000)
    for epoch, expected in enumerate((0.8, 0.6, 0.4, 0.2, 0.0, 0.0)):
        drawn = Counter(texts_of(tokenizer, row) for row in task.features(encoded, range(2000), epoch))
        assert drawn["a b c", "c b a"] / 2000 == pytest.approx(expected, abs=0.035 if expected else 0)


def test_validation_takes_the_nearest_pair_whatever_the_share(tokenizer):
    task = task_of(num_neighbors=1, self_pair_share=0.99)
    (example,) = task.features(encode(task, tokenizer).splits["validation"], [0], None)
    assert texts_of(tokenizer, example) == ("a b c", "c b a")


def test_draws_follow_from_seed_epoch_and_row_alone(tokenizer):
    tasks = [task_of(num_neighbors=4, self_pair_share=0.2, seed=seed) for seed in (1, 1, 2)]
    encoded = encode(tasks[0], tokenizer).splits["train"]

    def draw(task, rows):
        return [task.features(encoded, rows, epoch) for epoch in range(20)]

    whole = draw(tasks[0], [0, 1, 2, 3, 4])
    assert draw(tasks[1], [4, 2]) == [[features[4], features[2]] for features in whole]
    assert draw(tasks[2], [0, 1, 2, 3, 4]) != whole
    assert any(first != second for first, second in zip(whole, whole[1:], strict=False))


def test_batches_hold_the_pair_padded(tokenizer):
    task = task_of(num_neighbors=1)
    encoded = encode(task, tokenizer).splits["train"]
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
    encoded = encode(task, tokenizer, rows).splits["train"]
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
    encoded = encode(task, tokenizer, [("a basel", "bern a"), ("a basel", "b")]).splits["train"]
    batch = task.make_collator(tokenizer)(task.features(encoded, [0], 0))
    assert batch["retrieved_target_ids"].tolist() == batch["labels"].tolist()
    assert batch["retrieved_source_ids"][0, 1] == len(tokenizer) and batch["labels"][0, 0] == len(tokenizer) + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_neighbors": 0}, "`num_neighbors` must be at least 1"),
        ({"self_pair_share": 1.0}, "`self_pair_share` must be at least 0 and below 1, not 1.0"),
        ({"self_pair_share": -0.1}, "`self_pair_share` must be at least 0 and below 1, not -0.1"),
        ({"self_pair_annealing_epochs": 0}, "`self_pair_annealing_epochs` must be at least 1, not 0"),
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
        self_pair_share=0.25,
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
    recipe = Recipe(
        "tiny", COPYING, {"num_beams": 2}, make_recipe(copy_unknown_words=True, self_pair_share=0.0).training
    )
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


class PairReader(torch.nn.Module):
    """Costs a row as many nats as words of its target are not in the target of its pair."""

    def forward(self, labels, retrieved_target_ids, **inputs):
        missing = (labels[:, :, None] != retrieved_target_ids[:, None]).all(-1) & (labels != -100)
        return missing.sum()


def test_validation_says_whether_the_pair_is_used(tokenizer, monkeypatch):
    task = task_of(num_neighbors=2, self_pair_share=0.5, train_batch_size=2)
    rows = DatasetDict(train=dataset_of(ROWS), validation=dataset_of([("a b d", "d c"), ("x y", "a b c"), ("x", "z")]))
    data = task.encode(rows, tokenizer)
    encoded = data.splits
    monkeypatch.setattr(task, "loss_sums", lambda model, batch, data: (None, model(**batch)))
    counts = task.counts(encoded["validation"])
    validation = Validation(PairReader(), batches_of(task, data), counts, Accelerator(cpu=True), bool)
    scores = task.validate(data, validation)
    nearest = task.features(encoded["validation"], [0, 1, 2], None)
    expected = sum(len(set(example["labels"]) - set(example["retrieved_target_ids"])) for example in nearest) / sum(
        counts
    )
    assert scores["loss"] == scores["loss_nearest_pair"] == pytest.approx(expected)
    assert scores["loss_own_pair"] == 0 < scores["loss_nearest_pair"]
    train = [set(row["labels"]) for row in encoded["train"]]
    # A random pair is one of the train split: one of so many sums.
    sums = {
        sum(len(set(example["labels"]) - pair) for example, pair in zip(nearest, pairs, strict=True))
        for pairs in product(train, repeat=3)
    }
    assert round(scores["loss_random_pair"] * sum(counts)) in sums
    assert task.cost(scores) == scores["loss"]


def batches_of(task, data):
    rows = data.splits["validation"]
    yield task.make_collator(data.tokenizer)(task.features(rows, range(len(rows)), None)), np.arange(len(rows))


def test_a_comparison_of_pairs_that_is_stopped_gives_no_scores(tokenizer, monkeypatch):
    task = task_of(train_batch_size=1)
    data = encode(task, tokenizer)
    encoded = data.splits
    monkeypatch.setattr(task, "loss_sums", lambda model, batch, data: (None, model(**batch)))
    answers = iter([False, False, True])
    counts = task.counts(encoded["validation"])
    shares = batches_of(task, data)
    validation = Validation(PairReader(), shares, counts, Accelerator(cpu=True), lambda: next(answers))
    assert task.validate(data, validation) is None


def test_the_first_rows_of_a_long_validation_split_are_compared(tokenizer, monkeypatch):
    monkeypatch.setattr(edit, "COMPARED_ROWS", 2)
    task = task_of(num_neighbors=1)
    rows = DatasetDict(train=dataset_of(ROWS), validation=dataset_of([("a", "a"), ("a", "a"), ("a b d", "x x")]))
    data = task.encode(rows, tokenizer)
    encoded = data.splits
    monkeypatch.setattr(task, "loss_sums", lambda model, batch, data: (None, model(**batch)))
    counts = task.counts(encoded["validation"])
    validation = Validation(PairReader(), batches_of(task, data), counts, Accelerator(cpu=True), bool)
    scores = task.validate(data, validation)
    assert scores["loss_nearest_pair"] == 0 < scores["loss"]


def test_the_losses_of_the_pairs_stand_in_the_summary(tmp_path):
    last = train(make_recipe(max_steps=2), tmp_path, dataset=make_pairs())["last"]
    assert last["eval_loss_nearest_pair"] == pytest.approx(last["eval_loss"])
    assert {"eval_loss_random_pair", "eval_loss_own_pair"} <= last.keys()


def test_models_that_read_no_pairs_are_refused(tmp_path):
    recipe = make_recipe()
    recipe = Recipe("tiny", {"model_type": "residual_lstm", "vocab_size": 20}, {}, recipe.training)
    with pytest.raises(InputError, match="`model_type: residual_lstm` reads no retrieved pairs"):
        train(recipe, tmp_path, dataset=make_pairs())
