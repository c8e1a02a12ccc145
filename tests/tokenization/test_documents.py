from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.tokenization import join_sentences, train_document_tokenizer

DOCUMENTS = [
    ["the room was big .", "it's clean , mr. smith .", "we liked it !"],
    ["the dog's bed ( small ) cost 10 .", "no . never again ."],
]


@pytest.fixture
def tokenizer(tmp_path):
    train_document_tokenizer(DOCUMENTS, vocab_size=60).save_pretrained(tmp_path)
    return AutoTokenizer.from_pretrained(tmp_path)


def test_marks_close_sentences_and_the_document(tokenizer):
    ids = tokenizer("the room was big .\nwe liked it !").input_ids
    words = ["the", "room", "was", "big", ".", "\n", "we", "liked", "it", "!", "\n", "</s>"]
    assert tokenizer.convert_ids_to_tokens(ids) == words
    assert [tokenizer.convert_tokens_to_ids(token) for token in ("<pad>", "<s>", "</s>", "<unk>", "\n")] == [*range(5)]


def test_a_list_of_sentences_and_their_text_are_the_same(tokenizer):
    for sentences in DOCUMENTS:
        text = join_sentences(sentences)
        assert tokenizer(sentences, is_split_into_words=True).input_ids == tokenizer(text).input_ids
        assert tokenizer(f"\n {text} \r\n\n").input_ids == tokenizer(text).input_ids
        assert tokenizer(text).input_ids.count(4) == len(sentences)


def test_decoding_writes_a_sentence_a_line(tokenizer):
    ids = tokenizer(join_sentences(DOCUMENTS[1])).input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == "the dog's bed (small) cost 10.\nno. never again."


@pytest.mark.parametrize("text", ["a week-long stay", "e-mail", "2-3", "a - b", "1990–2000", "a – b", "a—b", "a — b"])
def test_hyphens_stay_hyphens_and_dashes_dashes(text):
    tokenizer = train_document_tokenizer([text.split("\n")], vocab_size=60)
    for encoded in (tokenizer(text), tokenizer([text], is_split_into_words=True)):
        assert tokenizer.unk_token_id not in encoded.input_ids
        assert tokenizer.decode(encoded.input_ids, skip_special_tokens=True) == text


def test_ordinary_text_is_split_where_a_capital_follows(tokenizer):
    expected = tokenizer("we liked it !\nthe room was big .\nit's clean , mr. smith .").input_ids
    assert tokenizer("We liked it! The room was big. It's clean, Mr. Smith.").input_ids == expected


@pytest.mark.parametrize("text", ["", " ", "\n \n"])
def test_blank_text_has_no_sentence(tokenizer, text):
    assert tokenizer(text).input_ids == [2]


def test_vocabulary_size_counts_the_marks():
    assert len(train_document_tokenizer(DOCUMENTS, vocab_size=9)) == 9


def test_a_text_in_place_of_a_list_is_refused():
    with pytest.raises(InputError, match="item 0 is the text 'we liked it'"):
        train_document_tokenizer(["we liked it"], vocab_size=60)
