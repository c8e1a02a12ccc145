from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.tasks.rewrite import DenoiseConfig, DenoiseTask, add_noise
from tests.training.tiny_runs import make_pairs, make_recipe

MASK = -1
SENTENCES = ["the cat sat on the mat", "a dog ran", "  ", "unbelievable weather today in the north"]


def noise(count, *shares, seed=0):
    return add_noise(range(count), MASK, np.random.default_rng(seed), *shares)


def make_task(**fields):
    return DenoiseTask(DenoiseConfig(dataset="texts", **fields))


def encode(task, **columns):
    rows = DatasetDict(train=Dataset.from_dict(columns), validation=Dataset.from_dict(columns))
    tokenizer = task.make_tokenizer(rows["train"], 300)
    return task.encode(rows, tokenizer), tokenizer


def test_shares_are_those_that_are_asked_for():
    masked = noise(100_000, 0.3, 0.0, 0)
    assert 1 - (len(masked) - masked.count(MASK)) / 100_000 == pytest.approx(0.3, abs=0.01)
    dropped = noise(100_000, 0.0, 0.2, 0)
    assert MASK not in dropped and dropped == sorted(dropped)
    assert 1 - len(dropped) / 100_000 == pytest.approx(0.2, abs=0.01)


def test_words_move_no_farther_than_they_may():
    moved = noise(1000, 0.0, 0.0, 3)
    distances = Counter(abs(place - word) for place, word in enumerate(moved))
    assert sorted(moved) == list(range(1000)) and set(distances) == {0, 1, 2, 3}
    assert noise(1000, 0.0, 0.0, 0) == list(range(1000))


def test_something_always_stays():
    assert all(noise(2, 0.0, 0.99, 0, seed=seed) for seed in range(50))


def test_sentences_are_targets_whole_and_sources_with_noise():
    task = make_task(mask_share=0.3, drop_share=0.0, swap_distance=0)
    data, tokenizer = encode(task, sentences=[SENTENCES[:3], SENTENCES[3:]])
    train_rows = data.splits["train"]
    assert len(train_rows) == 3
    examples = task.features(train_rows, [0, 1, 2], 0)
    assert [tokenizer.decode(one["labels"], skip_special_tokens=True) for one in examples] == [
        text for text in SENTENCES if text.strip()
    ]
    epochs = [[one["input_ids"] for one in task.features(train_rows, [0, 1, 2], epoch)] for epoch in range(9)]
    assert any(tokenizer.unk_token_id in ids for ids in sum(epochs, []))
    assert any(epoch != epochs[0] for epoch in epochs)
    assert epochs[4] == [task.features(train_rows, [row], 4)[0]["input_ids"] for row in (0, 1, 2)]
    for ids, whole in zip(epochs[0], train_rows["input_ids"], strict=True):
        assert ids[-1] == whole[-1] == tokenizer.eos_token_id


def test_words_of_several_pieces_stay_whole():
    task = make_task(tokenizer_model="bpe", mask_share=0.0, drop_share=0.0, swap_distance=3)
    data, tokenizer = encode(task, sentences=[SENTENCES])
    examples = task.features(data.splits["train"], [0, 1, 2], 3)
    assert any(len(one["labels"]) > 8 and one["input_ids"] != one["labels"] for one in examples)
    for one in examples:
        noisy, whole = (tokenizer.decode(one[name], skip_special_tokens=True) for name in ("input_ids", "labels"))
        assert sorted(noisy.split()) == sorted(whole.split())


def test_validation_has_the_same_noise_each_time_and_pairs_give_their_sources():
    task = make_task()
    data, _ = encode(task, source=SENTENCES, target=SENTENCES[::-1])
    rows = data.splits["validation"]
    assert len(rows) == 3 and task.features(rows, [0, 1, 2], None) == task.features(rows, [0, 1, 2], None)


def test_a_paraphraser_starts_from_what_was_denoised(tmp_path):
    plain = make_recipe()
    fields = {"train_batch_size": 9, "learning_rate": 0.02, "num_train_epochs": 4, "disable_tqdm": True}
    noisy = replace(plain, training=DenoiseConfig(dataset="reversed_words", **fields))
    assert train(noisy, tmp_path / "denoised", dataset=make_pairs())["best_cost"] < np.log(20)
    recipe = make_recipe(pretrained=str(tmp_path / "denoised"))
    assert train(recipe, tmp_path / "tuned", dataset=make_pairs())["steps"] == 12


def test_no_noise_is_refused():
    with pytest.raises(InputError, match="has no noise"):
        make_task(mask_share=0.0, drop_share=0.0, swap_distance=0)
