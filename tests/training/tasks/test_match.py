from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from datasets import ClassLabel, Dataset, DatasetDict
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from hf_paraphrase import CoupledLstmConfig, PairLstmConfig, ResidualLstmConfig
from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.models.layers.sentence_pair import matching_loss
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.losses import Validation
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import TaskData
from hf_paraphrase.training.tasks.match import MatchConfig, MatchTask, encode_texts

from ..tiny_runs import WORDS, assert_equal, last_weights, send_after

NAMES = ["other", "same"]


def make_pairs(train: int = 60, validation: int = 12) -> DatasetDict:
    """Pairs with the same first word are the same."""
    draw = random.Random(0)

    def split(size: int) -> Dataset:
        rows = [[draw.choices(WORDS[:4], k=draw.randint(1, 3)) for _ in range(2)] for _ in range(size)]
        columns = {f"sentence{side + 1}": [" ".join(row[side]) for row in rows] for side in (0, 1)}
        labels = [int(row[0][0] == row[1][0]) for row in rows]
        return Dataset.from_dict(columns | {"label": labels}).cast_column("label", ClassLabel(names=NAMES))

    return DatasetDict(train=split(train), validation=split(validation))


def make_queries(relevance: bool = True) -> DatasetDict:
    """Queries with two to four candidates; the right one repeats the query."""
    draw = random.Random(0)

    def split(size: int) -> Dataset:
        rows = []
        for _ in range(size):
            candidates = draw.sample(WORDS, k=draw.randint(2, 4))
            place = draw.randrange(len(candidates))
            labels = [int(number == place) for number in range(len(candidates))]
            row = {"query": candidates[place], "candidates": candidates, "label": place, "relevance": labels}
            rows.append(row)
        rows = Dataset.from_list(rows)
        return rows if relevance else rows.remove_columns("relevance")

    return DatasetDict(train=split(40), validation=split(10))


def make_recipe(**fields) -> Recipe:
    model = {"model_type": "pair_lstm", "encoder": "parallel", "vocab_size": 20, "embedding_size": 6, "hidden_size": 8}
    training = MatchConfig(
        dataset="d", num_train_epochs=2, train_batch_size=9, learning_rate=0.05, logging_steps=2, disable_tqdm=True
    )
    return Recipe("tiny", model, {}, training).override(fields)


def make_task(dataset: DatasetDict, **fields) -> tuple[MatchTask, TaskData]:
    task = MatchTask(MatchConfig(dataset="d", **fields))
    rows = task.load(dataset=dataset)
    return task, task.encode(rows, task.make_tokenizer(rows["train"], 20))


def test_training_labels_pairs_and_names_them(tmp_path):
    recipe = make_recipe(num_train_epochs=10, metric_for_best_model="max_f1", optim="adagrad", learning_rate=0.1)
    summary = train(recipe, tmp_path, dataset=make_pairs())
    best = max(entry["eval_max_f1"] for entry in summary["evaluations"])
    assert summary["best"]["eval_max_f1"] == best > 0
    assert summary["last"]["train_loss"] < summary["evaluations"][0]["train_loss"]
    pipe = pipeline("text-classification", model=str(tmp_path))
    assert pipe({"text": "w1 w2", "text_pair": "w1"})["label"] in NAMES
    assert pipe.model.config.label2id == {"other": 0, "same": 1}
    assert pipe.tokenizer.model_max_length == 128


def test_training_ranks_candidates(tmp_path):
    recipe = make_recipe(num_train_epochs=10, metric_for_best_model="map", num_negatives=2)
    summary = train(recipe, tmp_path, dataset=make_queries())
    assert summary["best"]["eval_map"] == max(entry["eval_map"] for entry in summary["evaluations"])
    assert {"eval_precision_at_1", "eval_mrr"} <= summary["best"].keys()
    assert summary["last"]["train_loss"] < summary["evaluations"][0]["train_loss"]
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.config.problem_type == "ranking" and model.config.num_labels == 1


def test_a_resumed_run_draws_the_same_negatives(tmp_path, monkeypatch):
    recipe = make_recipe(num_negatives=1, save_steps=3)
    train(recipe, tmp_path / "whole", dataset=make_queries())
    with monkeypatch.context() as patched:
        send_after(patched, 4)
        with pytest.raises(TrainingInterrupted, match="stopped by SIGTERM"):
            train(recipe, tmp_path / "parts", dataset=make_queries())
    train(recipe, tmp_path / "parts", dataset=make_queries(), resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


def test_pairs_are_encoded_as_the_pipeline_does():
    tokenizer = train_word_tokenizer(["a b c d e"], 20, sentence_pairs=True)
    first, second = encode_texts(tokenizer, ["a b", "c"], ["d", "e a b c"], (2, 4))
    assert [tokenizer.decode(ids) for ids in first] == ["a </s>", "c </s>"]
    assert [tokenizer.decode(ids) for ids in second] == ["d </s>", "e a b </s>"]
    whole = tokenizer("c", "e a").input_ids
    assert sum((side[0] for side in encode_texts(tokenizer, ["c"], ["e a"], (9, 9))), []) == whole


@pytest.mark.parametrize("relevance", [True, False])
def test_candidates_stand_in_consecutive_rows(relevance):
    task, data = make_task(make_queries(relevance))
    batch = task.make_collator(data.tokenizer)(task.features(data.splits["train"], [0, 1, 2], epoch=0))
    sizes = batch["group_ids"].bincount().tolist()
    assert len(sizes) == 3 and len(batch["labels"]) == len(batch["input_ids"]) == sum(sizes)
    assert [group.sum().item() for group in batch["labels"].split(sizes)] == [1.0, 1.0, 1.0]
    right = batch["labels"] == 1
    assert torch.equal(batch["input_ids"][right], batch["pair_input_ids"][right])


def test_negatives_follow_from_seed_epoch_and_row():
    task, data = make_task(make_queries(), num_negatives=1)
    drawn = [task.features(data.splits["train"], [row], epoch=0)[0] for row in (4, 5)]
    assert task.features(data.splits["train"], [4, 5], epoch=0) == drawn
    assert all(feature["labels"] == [1, 0] for feature in drawn)
    epochs = [task.features(data.splits["train"], range(40), epoch=epoch) for epoch in (0, 1)]
    assert epochs[0] != epochs[1]
    everything = task.features(data.splits["validation"], [0], epoch=None)[0]
    assert everything == data.splits["validation"][0]


def test_validation_counts_each_query_alike():
    task, data = make_task(make_queries())
    model = task.make_model(PairLstmConfig(vocab_size=20, embedding_size=4, hidden_size=4), data).eval()
    rows = list(range(10))
    collate = task.make_collator(data.tokenizer)

    def share(size: int):
        for start in range(0, 10, size):
            part = rows[start : start + size]
            yield collate(task.features(data.splits["validation"], part, None)), np.array(part)

    counts = task.counts(data.splits["validation"])
    validations = [Validation(model, share(size), counts, Accelerator(cpu=True), bool) for size in (1, 4)]
    scores = [task.validate(data, validation) for validation in validations]
    assert scores[0] == pytest.approx(scores[1])
    losses = []
    for batch, _ in share(1):
        group_ids, labels = batch.pop("group_ids"), batch.pop("labels")
        losses.append(matching_loss(model(**batch).logits, labels, "ranking", group_ids).item())
    assert scores[0]["loss"] == pytest.approx(np.mean(losses))
    assert task.validate(data, Validation(model, share(4), counts, Accelerator(cpu=True), lambda: True)) is None


def test_what_is_no_label_is_refused():
    pairs = make_pairs()
    plain = DatasetDict({split: Dataset.from_dict(rows.to_dict()) for split, rows in pairs.items()})
    with pytest.raises(InputError, match="label must be a ClassLabel"):
        MatchTask(MatchConfig(dataset="d")).load(dataset=plain)
    with pytest.raises(InputError, match="lacks the column label"):
        MatchTask(MatchConfig(dataset="d")).load(dataset=pairs.remove_columns("label"))
    pairs["train"] = pairs["train"].filter(lambda row: row["label"] == 1)
    with pytest.raises(InputError, match="every pair that d has to train on is labelled same"):
        MatchTask(MatchConfig(dataset="d")).load(dataset=pairs)


def test_a_metric_that_is_not_measured_is_named(tmp_path):
    with pytest.raises(InputError, match="`metric_for_best_model: map` is not measured here; there are: loss"):
        train(make_recipe(metric_for_best_model="map"), tmp_path, dataset=make_pairs())


def test_vectors_that_are_not_there_leave_an_earlier_run_alone(tmp_path):
    recipe, run = make_recipe(embeddings=str(tmp_path / "vectors.txt")), tmp_path / "run"
    run.mkdir()
    (run / "training_summary.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="`embeddings`: there is no file .*vectors.txt"):
        train(recipe, run, dataset=make_pairs(), overwrite=True)
    assert [file.name for file in run.iterdir()] == ["training_summary.json"]


def write_vectors(path) -> str:
    path.write_text("".join(f"{word} {' '.join([str(number)] * 6)}\n" for number, word in enumerate(WORDS[:3], 1)))
    return str(path)


def test_frozen_embeddings_stay_as_they_start(tmp_path, monkeypatch):
    recipe = make_recipe(embeddings=write_vectors(tmp_path / "vectors.txt"), freeze_embeddings=True, save_steps=3)
    train(recipe, tmp_path / "whole", dataset=make_pairs())
    name, weights = "embed_tokens.weight", last_weights(tmp_path / "whole")
    words = AutoTokenizer.from_pretrained(tmp_path / "whole").get_vocab()
    assert weights[name][words["w1"]].tolist() == [2.0] * 6
    with monkeypatch.context() as patched:
        send_after(patched, 4)
        with pytest.raises(TrainingInterrupted):
            train(recipe, tmp_path / "parts", dataset=make_pairs())
    stopped = last_weights(tmp_path / "parts")
    assert torch.equal(stopped[name], weights[name])
    assert not torch.equal(stopped["head.dense.weight"], weights["head.dense.weight"])
    train(recipe, tmp_path / "parts", dataset=make_pairs(), resume=True)
    assert_equal(last_weights(tmp_path / "parts"), weights)
    for run in ("whole", "parts"):
        (checkpoint,) = (tmp_path / run / "checkpoints").glob("last-*")
        optimizer = torch.load(checkpoint / "training_state.pt", weights_only=True)["optimizer"]
        shapes = {tuple(state["exp_avg"].shape) for state in optimizer["state"].values()}
        assert len(optimizer["state"]) == len(weights) - 1 and tuple(weights[name].shape) not in shapes


def test_embeddings_learn_unless_they_are_frozen(tmp_path):
    recipe = make_recipe(embeddings=write_vectors(tmp_path / "vectors.txt"))
    train(recipe, tmp_path / "run", dataset=make_pairs())
    words = AutoTokenizer.from_pretrained(tmp_path / "run").get_vocab()
    assert last_weights(tmp_path / "run")["embed_tokens.weight"][words["w1"]].tolist() != [2.0] * 6


def test_frozen_embeddings_get_no_gradient():
    task, data = make_task(make_pairs(), freeze_embeddings=True)
    model = task.make_model(PairLstmConfig(vocab_size=20, embedding_size=4, hidden_size=4), data)
    task.prepare_model(model, data)
    batch = task.make_collator(data.tokenizer)(task.features(data.splits["train"], [0, 1, 2], epoch=0))
    task.loss_sums(model, batch, data)[0].backward()
    without = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert without == {"embed_tokens.weight"}


def test_embeddings_frozen_at_random_are_a_mistake_that_is_said(caplog):
    task, data = make_task(make_pairs(), freeze_embeddings=True)
    task.make_model(PairLstmConfig(vocab_size=20, embedding_size=4, hidden_size=4), data)
    assert "`freeze_embeddings` without `embeddings`" in caplog.text


def test_a_checkpoint_has_embeddings_of_its_own():
    with pytest.raises(InputError, match="`embeddings` and `pretrained` exclude each other"):
        MatchConfig(dataset="d", embeddings="vectors.txt", pretrained="runs/matcher")


def test_the_model_learns_which_word_is_the_unknown_one(tmp_path):
    """With a tokenizer of another kind it need not be the fourth."""
    tokenizer = train_word_tokenizer(WORDS, 20, sentence_pairs=True)
    tokenizer.unk_token = "w1"
    tokenizer.save_pretrained(tmp_path)
    task, data = make_task(make_pairs(), tokenizer=str(tmp_path))
    config = task.make_model(CoupledLstmConfig(vocab_size=20, embedding_size=4, hidden_size=4), data).config
    assert config.unk_token_id == tokenizer.convert_tokens_to_ids("w1") != 3


def test_a_tokenizer_without_types_is_refused(tmp_path):
    train_word_tokenizer(WORDS, 20).save_pretrained(tmp_path)
    task = MatchTask(MatchConfig(dataset="d", tokenizer=str(tmp_path)))
    with pytest.raises(InputError, match="no `token_type_ids`"):
        task.make_tokenizer(task.load(dataset=make_pairs())["train"], 20)


def test_models_that_do_not_match_are_refused():
    task, data = make_task(make_pairs())
    with pytest.raises(InputError, match="residual_lstm` does not learn this task"):
        task.make_model(ResidualLstmConfig(), data)


def test_number_of_negatives_is_checked():
    with pytest.raises(InputError, match="`num_negatives` must be at least 1"):
        MatchConfig(dataset="d", num_negatives=0)


def test_pairs_of_sentences_may_be_read_in_sub_words():
    task, rows = MatchTask(MatchConfig(dataset="d", tokenizer_model="bpe")), make_pairs()
    tokenizer = task.make_tokenizer(rows["train"], 300)
    row = task.encode(rows, tokenizer).splits["train"][0]
    texts = [tokenizer.decode(ids, skip_special_tokens=True) for ids in row.values() if isinstance(ids, list)]
    assert [rows["train"][0][f"sentence{side}"] for side in (1, 2)] == texts
