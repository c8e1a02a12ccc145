from __future__ import annotations

import inspect
import json
import random
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.tokenization import train_word_tokenizer

CAPTIONS = [
    "A man's dog doesn't run, but (really) it does not bark!",
    "Two dogs: one is 20% white; the other costs $5.",
    "How do I get to Zürich, by train or by bus?",
]
LINES = [
    "What's the dog's name? It's Rex; the dogs' names aren't known!",
    'A sign that says "no parking" (or "stop.") is on the wall.',
    "A close-up of his/her well-used t-shirt.",
    "The clock reads 11:43 p.m., 1,000 people are 2.5 miles away.",
    "I do not know... can not say, is not sure: he's 5 #1.",
    "Mother's Day in the U.S. costs $5.50, or 20%!",
    "A week-long e-mail of 2-3 words - or none -, 1990–2000 – and one—two — three.",
    "- a list",
]


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(CAPTIONS, vocab_size=100)


def test_special_tokens_have_their_ids(tokenizer):
    assert tokenizer.convert_tokens_to_ids(["<pad>", "<s>", "</s>", "<unk>"]) == [0, 1, 2, 3]
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer.unk_token_id == 3


def test_words_then_end_mark(tokenizer):
    encoded = tokenizer("A dog, unheard-of")
    assert set(encoded) == {"input_ids", "attention_mask"}
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids) == ["a", "dog", ",", "<unk>", "<unk>", "<unk>", "</s>"]


def test_two_texts_each_end_in_their_mark(tokenizer):
    pairs = train_word_tokenizer(CAPTIONS, vocab_size=100, sentence_pairs=True)
    encoded = pairs("a dog", "two")
    assert encoded.input_ids == tokenizer("a dog", "two").input_ids
    assert pairs.convert_ids_to_tokens(encoded.input_ids) == ["a", "dog", "</s>", "two", "</s>"]
    assert encoded.token_type_ids == [0, 0, 0, 1, 1]
    assert pairs("a dog").token_type_ids == [0, 0, 0]


@pytest.mark.parametrize("text", [*CAPTIONS, *LINES])
def test_decoding_reads_naturally(text):
    tokenizer = train_word_tokenizer([*CAPTIONS, *LINES], vocab_size=200)
    ids = tokenizer(text).input_ids
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text.lower()


def test_unknown_words_keep_their_punctuation(tokenizer):
    ids = tokenizer("The xyz's dog (abc).").input_ids
    assert tokenizer.decode(ids) == "the <unk>'s dog (<unk>). </s>"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "the's dog ()."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dog's what's it's", "dog 's what 's it 's"),
        ("don't I'd o'clock 'tis", "don't i'd o'clock ' tis"),
        ('Don’t say “stop” or "go"', "don't say “ stop ” or “ go ”"),
        ("a well-used one - or two", "a well - used one ⁃ or two"),
        ("4:30 1,000 2.5kg 5. 3,", "4:30 1,000 2.5kg 5 . 3 ,"),
        ("p.m. e.g. U.S. a.", "p.m. e.g. u.s. a ."),
        ("one/two (three)!?", "one / two ( three ) ! ?"),
    ],
)
def test_words(text, words):
    tokenizer = train_word_tokenizer([text], vocab_size=100)
    assert tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) == [*words.split(), "</s>"]


def test_case_is_kept_on_request():
    tokenizer = train_word_tokenizer(CAPTIONS, vocab_size=100, lowercase=False)
    assert tokenizer.decode(tokenizer(CAPTIONS[2]).input_ids, skip_special_tokens=True) == CAPTIONS[2]


def test_vocabulary_is_cut_by_frequency_then_alphabet():
    texts = ["b a c", "c b d", "c e"]
    tokenizer = train_word_tokenizer(texts, vocab_size=7)
    assert len(tokenizer) == 7
    assert tokenizer.convert_ids_to_tokens([4, 5, 6]) == ["c", "b", "a"]
    shuffled = list(texts)
    random.Random(1).shuffle(shuffled)
    assert train_word_tokenizer(shuffled, vocab_size=7).get_vocab() == tokenizer.get_vocab()


def test_control_tokens_cannot_be_typed(tokenizer):
    ids = tokenizer("<s> a dog </s> <pad>").input_ids
    assert ids.count(2) == 1 and ids[-1] == 2 and 0 not in ids and 1 not in ids


def test_composed_and_decomposed_letters_are_one_word():
    tokenizer = train_word_tokenizer(["caf\u00e9"], vocab_size=5)
    assert tokenizer("cafe\u0301").input_ids == [4, 2] == tokenizer("CAF\u00c9").input_ids


@pytest.mark.parametrize(
    "text", ["", "   \n\t", "\u200b", "\x00", "😀👩‍👩‍👧", "שלום עולם", "a\u0301\u0301", "\ud7ff\uffff", "x" * 10_000]
)
def test_odd_text_is_read(tokenizer, text):
    ids = tokenizer(text).input_ids
    assert ids[-1] == 2
    assert isinstance(tokenizer.decode(ids, skip_special_tokens=True), str)


def test_padding_and_truncation(tokenizer):
    batch = tokenizer(["a dog", "a"], padding=True)
    assert batch.input_ids[1][-1] == 0 and batch.attention_mask[1] == [1, 1, 0]
    left = tokenizer(["a dog", "a"], padding=True, padding_side="left")
    assert left.input_ids[1][0] == 0 and left.attention_mask[1] == [0, 1, 1]
    cut = tokenizer("how do i get to zürich", truncation=True, max_length=3).input_ids
    assert tokenizer.convert_ids_to_tokens(cut) == ["how", "do", "</s>"]


def test_loads_without_this_package(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    texts = [*CAPTIONS, *LINES, "<s> unheard 😀 </s>", ""]
    result = subprocess.run(
        [sys.executable, "-c", BEHAVIOUR_ELSEWHERE, str(tmp_path), json.dumps(texts)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(result.stdout) == behaviour(tokenizer, texts)
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == tokenizer.get_vocab()


def behaviour(tokenizer, texts: list[str]) -> list:
    right = dict(tokenizer(texts, padding=True, truncation=True, max_length=6))
    left = dict(tokenizer(texts, padding=True, padding_side="left"))
    plain = tokenizer(texts).input_ids
    texts = tokenizer.batch_decode(plain), tokenizer.batch_decode(plain, skip_special_tokens=True)
    return [right, left, plain, *texts, tokenizer.special_tokens_map]


BEHAVIOUR_ELSEWHERE = f"""
import json, sys
sys.modules["hf_paraphrase"] = None
from transformers import AutoTokenizer
{inspect.getsource(behaviour)}
print(json.dumps(behaviour(AutoTokenizer.from_pretrained(sys.argv[1]), json.loads(sys.argv[2]))))
"""


def test_texts_are_streamed():
    read = []

    def stream():
        for number in range(5000):
            read.append(number)
            yield f"word{number % 7}"

    assert len(train_word_tokenizer(stream(), vocab_size=100)) == 4 + 7
    assert len(read) == 5000


@pytest.mark.parametrize(
    ("texts", "vocab_size", "message"),
    [
        (["a"], 4, "`vocab_size` is 4"),
        ([], 10, "no word"),
        (["", "  "], 10, "no word"),
        (["a", None], 10, "item 1 is None"),
        (["a", "b", 3], 10, "item 2 is 3"),
        (["a", "b\ud83d"], 10, "item 1 holds half a character at 1"),
        ("a b c", 10, "`texts` is one string"),
    ],
)
def test_bad_input_is_named(texts, vocab_size, message):
    with pytest.raises(InputError, match=message):
        train_word_tokenizer(texts, vocab_size=vocab_size)
