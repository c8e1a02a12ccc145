from __future__ import annotations

import copy
import pickle

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_paraphrase.models.text.encoded_inputs import OpenTokenizer, decode_with_words
from hf_paraphrase.tokenization import train_word_tokenizer

TEXTS = ["How do I reach Zürich?", "how to reach Basel, or ZÜRICH's lake"]


def tokenizer() -> PreTrainedTokenizerFast:
    return train_word_tokenizer(["how do i reach to or ? , 's"], vocab_size=20)


def test_each_unknown_word_has_an_id_of_its_own():
    plain = tokenizer()
    opened = OpenTokenizer(plain, 50)
    encoded = opened(TEXTS, truncation=True, max_length=24)["input_ids"]
    assert opened.words == {50: "zürich", 51: "basel", 52: "lake"}
    for ids, expected in zip(encoded, plain(TEXTS)["input_ids"], strict=True):
        assert [3 if word >= 50 else word for word in ids] == expected
    assert [word for ids in encoded for word in ids if word >= 50] == [50, 51, 50, 52]


def test_text_comes_back_as_if_the_words_were_known():
    plain, opened = tokenizer(), OpenTokenizer(tokenizer(), 50)
    everything = train_word_tokenizer(TEXTS, vocab_size=50)
    for text, ids in zip(TEXTS, opened(TEXTS)["input_ids"], strict=True):
        decoded = decode_with_words(plain, [1, *ids, 0, 0], opened.words, skip_special_tokens=True)
        assert decoded == everything.decode(everything(text)["input_ids"], skip_special_tokens=True)
    assert decode_with_words(plain, ids, opened.words).endswith("zürich's lake </s>")
    assert decode_with_words(plain, [4, 5], opened.words) == plain.decode([4, 5])


def test_texts_are_cut_as_the_tokenizer_cuts_them():
    opened = OpenTokenizer(tokenizer(), 50)
    (ids,) = opened(["reach Basel or Zürich"], truncation=True, max_length=3)["input_ids"]
    assert ids[1:] == [50, 2] and opened.words == {50: "basel"}
    assert opened.num_special_tokens_to_add() == 1


def test_it_travels_to_the_workers_of_a_dataset():
    opened = OpenTokenizer(tokenizer(), 50)
    for other in (copy.deepcopy(opened), pickle.loads(pickle.dumps(opened))):
        assert other(TEXTS) == OpenTokenizer(tokenizer(), 50)(TEXTS)
    assert opened.words == {}


def test_a_tokenizer_that_knows_every_word_is_left_alone():
    backend = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    plain = PreTrainedTokenizerFast(tokenizer_object=backend)
    opened = OpenTokenizer(plain, 3)
    assert opened(["ab b", "a"]) == {"input_ids": plain(["ab b", "a"])["input_ids"]} and not opened.words
