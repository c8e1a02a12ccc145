from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import hf_paraphrase
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.tokenization import train_tokenizer, train_word_tokenizer

CAPTIONS = [
    "A man's dog doesn't run, but (really) it does not bark!",
    "Two dogs: one is 20% white; the other costs $5.",
    "How do I get to Zürich, by train or by bus?",
    "Do dogs bark at men who run to the train?",
]
# Every kind and case that needs no `<unk>`.
SUBWORDS = {
    (model, lowercase): train_tokenizer(CAPTIONS, 300, model, lowercase)
    for model in ("bpe", "unigram")
    for lowercase in (True, False)
}
# All that can be encoded; halves of characters cannot.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("kind", SUBWORDS, ids=str)
@given(text=TEXTS)
def test_any_text_comes_back_without_unknown_tokens(kind, text):
    tokenizer = SUBWORDS[kind]
    ids = tokenizer(text).input_ids
    assert ids[-1] == 2 and not {0, 1, 2, 3} & set(ids[:-1])
    normalised = tokenizer.backend_tokenizer.normalizer.normalize_str(text)
    assert tokenizer.decode(ids, skip_special_tokens=True) == normalised


@pytest.mark.parametrize("kind", SUBWORDS, ids=str)
@pytest.mark.parametrize("text", [*CAPTIONS, "Göteborg, 東京 😀 <s> </s> <unk> e.g. 1,000.5"])
def test_ordinary_text_stays_but_for_its_case(kind, text):
    tokenizer = SUBWORDS[kind]
    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == (text.lower() if kind[1] else text)


@pytest.mark.parametrize("kind", SUBWORDS, ids=str)
def test_white_space_and_letters_have_one_form(kind):
    tokenizer = SUBWORDS[kind]
    assert tokenizer("  caf\u00e9\t\n on\u00a0me ").input_ids == tokenizer("cafe\u0301 on me").input_ids


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_frequent_pieces_are_single_tokens(model):
    tokenizer = SUBWORDS[model, True]
    assert len(tokenizer) <= 300
    assert tokenizer.tokenize("dogs bark")[0] in ("Ġdog", "Ġdogs")
    assert tokenizer.tokenize("dogs") == tokenizer.tokenize("two dogs")[-len(tokenizer.tokenize("dogs")) :]
    assert tokenizer.convert_tokens_to_ids(["<pad>", "<s>", "</s>", "<unk>"]) == [0, 1, 2, 3]


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_the_kinds_are_those_they_are_called(model):
    assert type(SUBWORDS[model, True].backend_tokenizer.model).__name__.lower() == model


def test_texts_without_a_piece_that_pays_are_spelt():
    tokenizer = train_tokenizer(["a"], 300, "unigram")
    assert tokenizer.decode(tokenizer("bad").input_ids, skip_special_tokens=True) == "bad"


def test_special_tokens_are_not_learnt_from_texts():
    tokenizer = train_tokenizer(["<s> </s> <pad>"] * 50, 400, "bpe")
    assert not {0, 1, 2, 3} & set(tokenizer("<s> </s> <pad>").input_ids[:-1])


@pytest.mark.parametrize("options", [{}, {"lowercase": False}, {"sentence_pairs": True}], ids=str)
def test_words_are_those_of_the_word_tokenizer(options):
    ours, theirs = train_tokenizer(CAPTIONS, 30, **options), train_word_tokenizer(CAPTIONS, 30, **options)
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()
    assert ours.model_input_names == theirs.model_input_names


@pytest.mark.parametrize("model", ["word", "bpe", "unigram"])
def test_two_texts_each_end_in_their_mark(model):
    tokenizer = train_tokenizer(CAPTIONS, 300, model, sentence_pairs=True)
    first, second = (tokenizer(text).input_ids for text in CAPTIONS[:2])
    encoded = tokenizer(*CAPTIONS[:2])
    assert encoded.input_ids == first + second
    assert encoded.token_type_ids == [0] * len(first) + [1] * len(second)


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_same_texts_give_the_same_bpe(lowercase):
    again = train_tokenizer(iter(CAPTIONS), 300, "bpe", lowercase)
    assert again.backend_tokenizer.to_str() == SUBWORDS["bpe", lowercase].backend_tokenizer.to_str()


def test_the_same_texts_give_the_same_unigram_pieces():
    assert train_tokenizer(CAPTIONS, 300, "unigram").get_vocab().keys() == SUBWORDS["unigram", True].get_vocab().keys()


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_loads_without_this_package(model, tmp_path):
    tokenizer = SUBWORDS[model, False]
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(CAPTIONS).input_ids == tokenizer(CAPTIONS).input_ids
    code = (
        "import sys; sys.modules['hf_paraphrase'] = None\n"
        "from transformers import AutoTokenizer\n"
        "tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "ids = tokenizer(sys.argv[2]).input_ids\n"
        "print(ids, tokenizer.decode(ids, skip_special_tokens=True))"
    )
    text = "Göteborg's <s> dogs"
    command = [sys.executable, "-c", code, str(tmp_path), text]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert printed.strip() == f"{tokenizer(text).input_ids} {text}"


@pytest.mark.parametrize(
    ("texts", "vocab_size", "model", "message"),
    [
        (["a"], 10, "sentencepiece", "`model` must be one of word, bpe, unigram, not 'sentencepiece'"),
        (["a"], 4, "word", "`vocab_size` is 4, of which 4 are special tokens; give it room for words"),
        (["a"], 260, "bpe", "`vocab_size` is 260, of which 260 are special tokens and single bytes"),
        (["a"], 100, "unigram", "`vocab_size` is 100, of which 260 are special tokens and single bytes"),
        (["", " \n"], 300, "bpe", "no word"),
        ([], 300, "unigram", "no word"),
        (["a", None], 300, "bpe", "item 1 is None"),
        (["a", "b\ud83d"], 300, "unigram", "item 1 holds half a character at 1"),
        ("a b c", 300, "bpe", "`texts` is one string"),
    ],
)
def test_bad_input_is_named(texts, vocab_size, model, message):
    with pytest.raises(InputError, match=message):
        train_tokenizer(texts, vocab_size, model)


def test_it_is_a_public_name():
    assert hf_paraphrase.train_tokenizer is train_tokenizer and "train_tokenizer" in hf_paraphrase.__all__
