from __future__ import annotations

import pytest
from datasets import Dataset, DatasetDict, load_from_disk
from transformers import AutoTokenizer

from hf_paraphrase.errors import InputError
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.tasks.paraphrase import ParaphraseTask, encode_pairs

from ..tiny_runs import WORDS, make_pairs


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(WORDS, 100)


def pairs_of(sources: list[str], targets: list[str]) -> Dataset:
    return Dataset.from_dict({"source": sources, "target": targets})


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
        (DatasetDict(train=Dataset.from_dict({"source": ["a"]})), "split train .* lacks the column target"),
    ],
)
def test_unusable_data_is_named(dataset, message):
    with pytest.raises(InputError, match=message):
        ParaphraseTask(TrainingConfig(dataset="d")).load(dataset=dataset)


def test_number_of_pairs_is_bounded():
    training = TrainingConfig(dataset="d", max_train_samples=5, max_eval_samples=10**6)
    pairs = ParaphraseTask(training).load(dataset=make_pairs(20, 7))
    assert {split: len(rows) for split, rows in pairs.items()} == {"train": 5, "validation": 7}


def test_unknown_corpus_is_an_error():
    with pytest.raises(InputError, match="mscocco"):
        ParaphraseTask(TrainingConfig(dataset="mscocco")).load()


def test_missing_tokenizer_is_an_error(tmp_path):
    with pytest.raises(InputError, match="`tokenizer`: .*nowhere cannot be loaded"):
        ParaphraseTask(TrainingConfig(dataset="d", tokenizer=str(tmp_path / "nowhere"))).make_tokenizer(
            make_pairs()["train"], 10
        )


def test_tokenizer_is_trained_on_both_sides_or_loaded(tmp_path):
    pairs = pairs_of(["left Left", "left"], ["right", "right"])
    trained = ParaphraseTask(TrainingConfig(dataset="d", max_source_length=9)).make_tokenizer(pairs, 10)
    assert set(trained.get_vocab()) == {"<pad>", "<s>", "</s>", "<unk>", "left", "right"}
    assert trained.model_max_length == 9
    trained.save_pretrained(tmp_path)
    loaded = ParaphraseTask(TrainingConfig(dataset="d", tokenizer=str(tmp_path))).make_tokenizer(pairs, 10)
    assert loaded.get_vocab() == trained.get_vocab()
