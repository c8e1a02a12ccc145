from __future__ import annotations

from itertools import count

import pytest
import torch
from datasets import Dataset, DatasetDict, load_from_disk
from safetensors.torch import load_file
from transformers import AutoTokenizer

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.arguments import ParaphraseConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks.paraphrase import ParaphraseTask

from ..tiny_runs import WORDS, assert_equal, last_weights, make_pairs, make_recipe, send_after


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(WORDS, 100)


def pairs_of(sources: list[str], targets: list[str]) -> Dataset:
    return Dataset.from_dict({"source": sources, "target": targets})


def encode_pairs(pairs: Dataset, tokenizer, max_source_length: int, max_target_length: int, **fields) -> Dataset:
    lengths = {"max_source_length": max_source_length, "max_target_length": max_target_length}
    return ParaphraseTask(ParaphraseConfig(dataset="pairs", **lengths, **fields)).encode_split(pairs, tokenizer)


def test_sides_are_encoded_with_the_end_token(tokenizer):
    encoded = encode_pairs(pairs_of(["w1 w2"], ["w3"]), tokenizer, 10, 10)
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in ("w1", "w2", "w3")}
    assert encoded[:] == {"input_ids": [[ids["w1"], ids["w2"], 2]], "labels": [[ids["w3"], 2]]}


def test_long_texts_are_cut_and_keep_the_end_token(tokenizer):
    encoded = encode_pairs(pairs_of(["w1 w2 w3 w4"], ["w1 w2 w3 w4"]), tokenizer, 3, 4)
    assert [len(encoded[0]["input_ids"]), len(encoded[0]["labels"])] == [3, 4]
    assert encoded[0]["input_ids"][-1] == encoded[0]["labels"][-1] == 2


def test_pairs_with_an_empty_side_are_dropped_and_counted(tokenizer, caplog):
    encoded = encode_pairs(pairs_of(["w1", " ", "w3", ""], ["w1", "w2", "\n", ""]), tokenizer, 10, 10)
    assert len(encoded) == 1
    assert "left out 3 of 4 pairs" in caplog.text


def test_no_pair_with_words_is_an_error(tokenizer):
    with pytest.raises(InputError, match="none of the 2 pairs"):
        encode_pairs(pairs_of(["", " "], ["w1", "w2"]), tokenizer, 10, 10)


def test_encoding_is_found_in_the_cache_the_next_time(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    make_pairs().save_to_disk(tmp_path / "pairs")
    caches = []
    for _ in range(2):
        pairs, loaded = load_from_disk(tmp_path / "pairs"), AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
        encoded = [encode_pairs(pairs[split], loaded, 9, 8) for split in ("train", "validation")]
        caches.append([rows.cache_files for rows in encoded])
    assert caches[0] == caches[1] != [[], []]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (DatasetDict(train=pairs_of(["a"], ["b"])), "no split validation, only: train"),
        (DatasetDict(train=pairs_of([], []), validation=pairs_of(["a"], ["b"])), "split train .* is empty"),
        (DatasetDict(train=Dataset.from_dict({"source": ["a"]})), "lacks the column target; it has: source"),
    ],
)
def test_unusable_data_is_named(dataset, message):
    with pytest.raises(InputError, match=message):
        ParaphraseTask(ParaphraseConfig(dataset="d")).load(dataset=dataset)


def test_number_of_pairs_is_bounded():
    training = ParaphraseConfig(dataset="d", max_train_samples=5, max_eval_samples=10**6)
    pairs = ParaphraseTask(training).load(dataset=make_pairs(20, 7))
    assert {split: len(rows) for split, rows in pairs.items()} == {"train": 5, "validation": 7}


def test_unknown_corpus_is_an_error():
    with pytest.raises(InputError, match="mscocco"):
        ParaphraseTask(ParaphraseConfig(dataset="mscocco")).load()


def test_missing_tokenizer_is_an_error(tmp_path):
    with pytest.raises(InputError, match="`tokenizer`: .*nowhere cannot be loaded"):
        ParaphraseTask(ParaphraseConfig(dataset="d", tokenizer=str(tmp_path / "nowhere"))).make_tokenizer(
            make_pairs()["train"], 10
        )


def test_tokenizer_is_trained_on_both_sides_or_loaded(tmp_path):
    pairs = pairs_of(["left Left", "left"], ["right", "right"])
    trained = ParaphraseTask(ParaphraseConfig(dataset="d", max_source_length=9)).make_tokenizer(pairs, 10)
    assert set(trained.get_vocab()) == {"<pad>", "<s>", "</s>", "<unk>", "left", "right"}
    assert trained.model_max_length == 9
    trained.save_pretrained(tmp_path)
    loaded = ParaphraseTask(ParaphraseConfig(dataset="d", tokenizer=str(tmp_path))).make_tokenizer(pairs, 10)
    assert loaded.get_vocab() == trained.get_vocab()


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A model that has read the pairs twice."""
    folder = tmp_path_factory.mktemp("pretrained")
    train(make_recipe(), folder, dataset=make_pairs())
    return str(folder)


@pytest.fixture
def brevity_reward(monkeypatch):
    """Rewards short outputs, which are soon learnt."""

    def reward(sources, targets, outputs):
        return [1 - len(output.split()) / 8 for output in outputs]

    monkeypatch.setattr("hf_paraphrase.training.tasks.paraphrase.load_reward", lambda *_: reward)


def rbm_recipe(pretrained, **fields):
    settings = {"objective": "rbm", "reward": "rouge", "pretrained": pretrained, "num_train_epochs": 1}
    return make_recipe(**settings | {"max_target_length": 8, "eval_strategy": "steps", "eval_steps": 2} | fields)


def test_fine_tuning_by_a_reward_keeps_the_best(pretrained, tmp_path, monkeypatch):
    """With a reward that goes up and down whatever the model writes."""
    calls = count()

    def reward(sources, targets, outputs):
        return [next(calls) * 3 % 7 / 7] * len(outputs)

    monkeypatch.setattr("hf_paraphrase.training.tasks.paraphrase.load_reward", lambda *_: reward)
    summary = train(rbm_recipe(pretrained, num_train_epochs=2), tmp_path, dataset=make_pairs())
    rewards = [entry["eval_reward"] for entry in summary["evaluations"]]
    assert summary["best"]["eval_reward"] == max(rewards) == -summary["best_cost"]
    assert rewards[0] < max(rewards) > rewards[-1]
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == AutoTokenizer.from_pretrained(pretrained).get_vocab()


def test_fine_tuning_starts_from_the_checkpoint_and_not_by_chance(pretrained, tmp_path):
    """With a learning rate that changes nothing, the weights are those it began with."""
    train(rbm_recipe(pretrained, learning_rate=1e-12, max_steps=1, eval_steps=1), tmp_path, dataset=make_pairs())
    begun, ended = (load_file(f"{folder}/model.safetensors") for folder in (pretrained, tmp_path))
    for name, weight in begun.items():
        torch.testing.assert_close(ended[name], weight)


def test_stopped_fine_tuning_goes_on_as_if_nothing_had_been(pretrained, brevity_reward, tmp_path, monkeypatch):
    recipe, pairs = rbm_recipe(pretrained, cross_entropy_weight=0.2), make_pairs()
    train(recipe, tmp_path / "whole", dataset=pairs)
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        send_after(patch, 3)
        train(recipe, tmp_path / "parts", dataset=pairs)
    train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reward": "rouge"}, "`reward` is for `objective: rbm`"),
        ({"cross_entropy_weight": 0.5}, "`cross_entropy_weight` is for `objective: rbm`"),
        ({"objective": "rbm", "pretrained": "p"}, "needs `reward`"),
        ({"objective": "rbm", "reward": "rouge"}, "name it in `pretrained`"),
        ({"objective": "rbm", "reward": "rouge", "pretrained": "p", "cross_entropy_weight": 1.0}, "0 and below 1"),
        ({"objective": "likelihood"}, "`objective`"),
    ],
)
def test_impossible_objectives_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        ParaphraseConfig(dataset="d", **fields)


def test_missing_models_are_named_before_training(pretrained, tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        ParaphraseTask(
            ParaphraseConfig(dataset="d", objective="rbm", reward=str(tmp_path / "nowhere"), pretrained="p")
        )
    with pytest.raises(InputError, match="`tokenizer`.*nowhere"):
        train(rbm_recipe(str(tmp_path / "nowhere")), tmp_path / "run", dataset=make_pairs())
    with pytest.raises(InputError, match="its `model_type` is residual_lstm, not fset"):
        training = ParaphraseConfig(dataset="d", pretrained=pretrained)
        recipe = Recipe("other", {"model_type": "fset"}, {}, training)
        train(recipe, tmp_path / "run", dataset=make_pairs(), overwrite=True)


@pytest.mark.parametrize(("model", "text"), [("word", "w1 w2"), ("bpe", "W1 ẅ2"), ("unigram", "W1 ẅ2")])
def test_the_recipe_names_the_kind_of_a_trained_tokenizer(model, text):
    config = ParaphraseConfig(dataset="d", tokenizer_model=model, lowercase=False)
    tokenizer = ParaphraseTask(config).make_tokenizer(make_pairs()["train"], 300)
    ids = tokenizer(text).input_ids
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert (type(tokenizer.backend_tokenizer.model).__name__ == "WordLevel") == (model == "word")


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="`tokenizer_model` must be one of 'word', 'bpe', 'unigram', not 'char"):
        ParaphraseConfig(dataset="d", tokenizer_model="characters")
